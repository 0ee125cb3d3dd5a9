#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/kernels/cpu/isa_table.h"
#include "octet/kernels/ops.h"

namespace octet {
namespace {

using testing::HasSubstr;

/// OCTET_ISA for the life of the object, then as it was.
class IsaVariable {
 public:
  explicit IsaVariable(const char* value) {
    if (const char* old = std::getenv("OCTET_ISA")) {
      old_ = old;
      was_set_ = true;
    }
    value == nullptr ? unsetenv("OCTET_ISA") : setenv("OCTET_ISA", value, 1);
  }
  ~IsaVariable() { was_set_ ? setenv("OCTET_ISA", old_.c_str(), 1) : unsetenv("OCTET_ISA"); }
  IsaVariable(const IsaVariable&) = delete;
  IsaVariable& operator=(const IsaVariable&) = delete;

 private:
  std::string old_;
  bool was_set_ = false;
};

TEST(IsaTable, PortableIsAlwaysThereAndLast) {
  const auto tables = cpu::runnable_tables();
  ASSERT_FALSE(tables.empty());
  EXPECT_EQ(tables.back()->name, "portable");
}

TEST(IsaTable, TheBestIsTheDefault) {
  const IsaVariable unset(nullptr);
  EXPECT_EQ(&cpu::choose_table(""), cpu::runnable_tables().front());
}

TEST(IsaTable, AnyRunnableOneCanBeForced) {
  for (const cpu::KernelTable* table : cpu::runnable_tables()) {
    const IsaVariable unset(nullptr);
    EXPECT_EQ(&cpu::choose_table(table->name), table);
    const IsaVariable set(std::string(table->name).c_str());
    EXPECT_EQ(&cpu::choose_table(""), table);
    EXPECT_EQ(make_cpu_ops({})->name(), "cpu/" + std::string(table->name));
  }
}

TEST(IsaTable, TheOptionWinsOverTheEnvironment) {
  const IsaVariable set("no-such-thing");
  EXPECT_EQ(cpu::choose_table("portable").name, "portable");
}

TEST(IsaTable, AMissingOneIsAnErrorThatListsWhatIsThere) {
  const IsaVariable unset(nullptr);
  for (const bool by_environment : {false, true}) {
    const IsaVariable set(by_environment ? "sse9" : nullptr);
    try {
      cpu::choose_table(by_environment ? "" : "sse9");
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
      EXPECT_THAT(error.what(), HasSubstr("\"sse9\""));
      for (const cpu::KernelTable* table : cpu::runnable_tables()) {
        EXPECT_THAT(error.what(), HasSubstr(std::string(table->name)));
      }
    }
  }
}

TEST(CpuOps, RefusesANonsensicalNumberOfThreads) {
  for (const int threads : {-1, 100'000}) {
    try {
      make_cpu_ops({.threads = threads, .isa = "portable"});
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    }
  }
}

}  // namespace
}  // namespace octet
