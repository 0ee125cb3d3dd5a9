// Another program's time: of runs that succeed alone, by the clock or by its own word.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/cli/other_program.h"
#include "support/error_message.h"

namespace octet::cli {
namespace {

using test::error_message;
using testing::AllOf;
using testing::HasSubstr;

TEST(OtherProgram, TakesItsWordOrTheClock) {
  EXPECT_EQ(OtherProgram("echo took 12.5 ms", "took ([0-9.]+) ms").run_ms(), 12.5);
  EXPECT_GE(OtherProgram("sleep 0.02", "").run_ms(), 20.0);
}

TEST(OtherProgram, HearsAllOfAListOfCommands) {
  EXPECT_EQ(OtherProgram("echo 7 >&2; true", "([0-9]+)").run_ms(), 7.0);
  EXPECT_EQ(OtherProgram("echo 8 # and nothing else", "([0-9]+)").run_ms(), 8.0);
}

TEST(OtherProgram, RefusesFailureAsATime) {
  const OtherProgram fails("echo 5; echo no such model >&2; exit 3", "([0-9]+)");
  EXPECT_THAT(
      error_message([&] { fails.run_ms(); }),
      AllOf(HasSubstr("exit code 3: no such model"), HasSubstr("--compare-command"))
  );
  EXPECT_THAT(
      error_message([] { OtherProgram("/no/such/program", "").run_ms(); }), HasSubstr("127")
  );
}

TEST(OtherProgram, RefusesWhatIsNoTime) {
  for (const char* said : {"echo fast", "echo -5", "echo 0", "echo 12ms"}) {
    const OtherProgram program(said, "(.*)");
    EXPECT_THAT(error_message([&] { program.run_ms(); }), HasSubstr("no time in milliseconds"))
        << said;
  }
  EXPECT_THAT(
      error_message([] { OtherProgram("echo fast", "([0-9]+)").run_ms(); }),
      HasSubstr("captures nothing")
  );
  EXPECT_THAT(error_message([] { OtherProgram("true", "[0-9]+"); }), HasSubstr("parentheses"));
  EXPECT_THAT(error_message([] { OtherProgram("true", "([0-9]+"); }), HasSubstr("POSIX"));
}

}  // namespace
}  // namespace octet::cli
