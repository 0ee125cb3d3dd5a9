// Where `octet draft-head` writes: never over what it reads, and nowhere after hours of counting
// that could not be written there.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/run_program.h"

namespace octet::test {
namespace {

using testing::HasSubstr;

TEST(DraftHeadOutput, ReplacesNothingThatItReads) {
  const TemporaryDirectory directory;
  const std::string target = directory.file("target.gguf");
  const std::string drafter = directory.file("drafter.gguf");
  std::filesystem::copy_file(kPairTarget, target);
  std::filesystem::copy_file(kPairDrafter, drafter);
  const std::string text = directory.write("text.txt", "What is the capital of Finland?");
  const std::string before = read_text(target);
  for (const std::string& output : {target, drafter, text}) {
    const ProgramResult result = run_octet(
        {"draft-head",
         "-m",
         target,
         "-md",
         drafter,
         "--tokens",
         "64",
         "--text",
         text,
         "-t",
         "1",
         "-o",
         output}
    );
    EXPECT_EQ(result.exit_code, 2) << output;
    EXPECT_THAT(result.err, HasSubstr(output));
  }
  EXPECT_EQ(read_text(target), before);
  EXPECT_EQ(std::filesystem::file_size(drafter), std::filesystem::file_size(kPairDrafter));
  EXPECT_EQ(read_text(text), "What is the capital of Finland?");
}

TEST(DraftHeadOutput, ComesBeforeTheCounting) {
  const TemporaryDirectory directory;
  const ProgramResult result = run_octet(
      {"draft-head",
       "-m",
       kPairTarget,
       "-md",
       kPairDrafter,
       "--tokens",
       "64",
       "--prompts",
       directory.file("none.jsonl"),
       "-o",
       directory.file("no/where.gguf")}
  );
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("no/where.gguf")) << "not the prompts, which come later";
}

}  // namespace
}  // namespace octet::test
