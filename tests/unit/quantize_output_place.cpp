// Where outputs appear: what is checked before the work, and folders that appear whole or not at
// all.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/quantize/output_place.h"
#include "support/temporary_directory.h"

namespace octet::test {
namespace {

namespace fs = std::filesystem;

void expect_refusal(
    const std::string& output, int64_t bytes, ErrorKind kind, const std::string& reason
) {
  try {
    prepare_output({"no input"}, output, bytes, ExistingOutput::kRefuse);
    FAIL() << "expected: " << reason;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    EXPECT_THAT(error.what(), testing::HasSubstr(reason));
  }
}

TEST(OutputPlace, RefusesWhatCannotBeWrittenBeforeTheWork) {
  const TemporaryDirectory directory;
  expect_refusal(
      directory.file("x"), int64_t{1} << 60, ErrorKind::kResourceExhausted, "are needed and"
  );
  expect_refusal(directory.file("no/where"), 0, ErrorKind::kNotFound, "does not exist");
  expect_refusal(directory.write("there", ""), 0, ErrorKind::kInvalidArgument, "add --force");
  EXPECT_NO_THROW(prepare_output({"no input"}, directory.file("there"), 0, ExistingOutput::kReplace)
  );
  EXPECT_NO_THROW(prepare_output({"no input"}, directory.file("new"), 0, ExistingOutput::kRefuse));
}

TEST(OutputPlace, RemovesWhatDeadProcessesLeftAndNothingElse) {
  const TemporaryDirectory directory;
  constexpr const char* kNobody = "2147483646";  // beyond any process
  const std::string dead = directory.write(std::string("out.") + kNobody + "-0.partial", "");
  const std::string own = directory.write("out." + std::to_string(::getpid()) + "-9.partial", "");
  const std::string other = directory.write(std::string("out2.") + kNobody + "-0.partial", "");
  const std::string journal = directory.write("out.partial", "");
  prepare_output({"no input"}, directory.file("out"), 0, ExistingOutput::kRefuse);
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::exists(own));
  EXPECT_TRUE(fs::exists(other));
  EXPECT_TRUE(fs::exists(journal));
}

TEST(OutputPlace, NeverReplacesAnInput) {
  const TemporaryDirectory directory;
  const std::string input = directory.write("in.gguf", "");
  fs::create_directory(directory.file("folder"));
  const std::string inside = directory.write("folder/in.jsonl", "");
  const std::vector<std::string> inputs = {"", "no input", input, inside};
  for (const std::string& output : {input, inside, directory.file("folder"), directory.path()}) {
    EXPECT_THROW(prepare_output(inputs, output, 0, ExistingOutput::kReplace), Error) << output;
  }
  const std::string beside = directory.write("folder/in.json", "");
  EXPECT_NO_THROW(prepare_output(inputs, beside, 0, ExistingOutput::kReplace));
}

TEST(AtomicFolder, AppearsWholeOrNotAtAll) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("folder");
  {
    const AtomicFolder abandoned(path);
    std::ofstream(abandoned.file("a")) << "old";
    EXPECT_FALSE(fs::exists(path));
  }
  EXPECT_TRUE(fs::is_empty(directory.path()));
  for (const char* content : {"first", "second"}) {
    AtomicFolder folder(path);
    std::ofstream(folder.file("a")) << content;
    folder.finish();
    EXPECT_EQ(read_text(path + "/a"), content);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(directory.path()), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace octet::test
