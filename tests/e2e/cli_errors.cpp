// What people do wrong: one sentence with cause and remedy on standard error, nothing on standard
// output, exit code 2.

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <ostream>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/formats/open_checkpoint.h"
#include "support/run_program.h"
#include "support/write_checkpoint.h"

namespace octet::test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Mistake {
  const char* name;
  std::vector<std::string> arguments;
  std::vector<std::string> mentions;  // all of them
};

void PrintTo(const Mistake& mistake, std::ostream* out) {
  *out << mistake.name;
}

std::string name_of(const testing::TestParamInfo<Mistake>& test) {
  std::string name;
  for (const char character : std::string(test.param.name)) {
    name += std::isalnum(static_cast<unsigned char>(character)) != 0 ? character : '_';
  }
  return name;
}

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreAnsweredWithOneSentence) {
  const ProgramResult result = run_octet(GetParam().arguments);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, AllOf(StartsWith("octet: "), EndsWith("\n")));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  for (const std::string& mention : GetParam().mentions) {
    EXPECT_THAT(result.err, HasSubstr(mention));
  }
}

std::vector<std::string> pair_arguments(std::vector<std::string> more) {
  std::vector<std::string> arguments = {
      "run", "-m", kPairTarget, "-md", kPairDrafter, "-p", "Hello"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<std::string> target_arguments(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"run", "-m", kPairTarget, "-p", "Hello"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

const std::string kReadme = OCTET_SOURCE_DIR "/README.md";

INSTANTIATE_TEST_SUITE_P(
    All,
    Mistakes,
    testing::Values(
        Mistake{"no command", {}, {"--help"}},
        Mistake{"unknown command", {"ruin"}, {"ruin", "--help"}},
        Mistake{"unknown flag", target_arguments({"--tmep", "1"}), {"--tmep", "octet run --help"}},
        Mistake{"no model", {"run", "-p", "x"}, {"--model"}},
        Mistake{"missing file", {"run", "-m", "no/such.gguf", "-p", "x"}, {"no/such.gguf"}},
        Mistake{"not a model", {"run", "-m", kReadme, "-p", "x"}, {"README.md"}},
        Mistake{"not a number", target_arguments({"-n", "many"}), {"many"}},
        Mistake{"temperature out of range", target_arguments({"--temp", "-1"}), {"--temp", "-1"}},
        Mistake{"top-p zero", target_arguments({"--temp", "1", "--top-p", "0"}), {"top_p"}},
        Mistake{
            "repeat penalty zero",
            target_arguments({"--repeat-penalty", "0"}),
            {"repetition_penalty"}},
        Mistake{"bad bias", target_arguments({"--logit-bias", "x=1"}), {"x=1", "ID=BIAS"}},
        Mistake{"bias outside", target_arguments({"--logit-bias", "99999=1"}), {"99999"}},
        Mistake{"bad K/V type", target_arguments({"--kv-type", "q4"}), {"q4", "bf16"}},
        Mistake{
            "a list of CPUs that is none", target_arguments({"--cpus", "3-1"}), {"3-1", "0,2-5"}},
        Mistake{
            "a CPU that is not there", target_arguments({"--cpus", "1023"}), {"1023", "may use"}},
        Mistake{
            "unknown instruction set", target_arguments({"--isa", "sse9"}), {"sse9", "portable"}},
        Mistake{"context too large", target_arguments({"-c", "100000"}), {"100000", "4096"}},
        Mistake{"prompt too long", target_arguments({"-c", "4"}), {"context"}},
        Mistake{"prompt twice", target_arguments({"-f", kReadme}), {"--file"}},
        Mistake{
            "raw with system", target_arguments({"--raw", "--system", "x"}), {"--raw", "--system"}},
        Mistake{
            "raw with a template",
            target_arguments({"--raw", "--chat-template", "bolt"}),
            {"--raw", "--chat-template"}},
        Mistake{
            "no such template",
            target_arguments({"--chat-template", "/nonexistent.jinja"}),
            {"/nonexistent.jinja"}},
        Mistake{"margins without json", target_arguments({"--margins"}), {"--json"}},
        Mistake{"marks with json", target_arguments({"--json", "--marks", "text"}), {"--marks"}},
        Mistake{"drafts without drafter", target_arguments({"--draft-max", "3"}), {"-md"}},
        Mistake{"compare without drafter", target_arguments({"--compare", "3"}), {"-md"}},
        Mistake{
            "compare by ratio",
            pair_arguments({"--compare", "3", "--verify-rule", "ratio", "--temp", "1"}),
            {"--compare", "--verify-rule ratio"}},
        Mistake{"scale without drafter", target_arguments({"--embedding-scale", "2"}), {"-md"}},
        Mistake{"bad scale", pair_arguments({"--embedding-scale", "big"}), {"big"}},
        Mistake{
            "thinking contradiction",
            target_arguments({"--no-think", "--thinking-budget", "5"}),
            {"--no-think"}},
        Mistake{"too many drafts", pair_arguments({"--draft-max", "99"}), {"99"}},
        Mistake{"drafter as target", {"run", "-m", kPairDrafter, "-p", "x"}, {"dflash", "-md"}},
        Mistake{
            "target as drafter",
            {"run", "-m", kPairTarget, "-md", kPairTarget, "-p", "x"},
            {"-md", "dflash"}},
        Mistake{
            "verify unknown drafter",
            {"verify", "-m", kPairTarget, "--drafter", "dflash"},
            {"dflash", "-md"}},
        Mistake{
            "verify bad prompts",
            {"verify", "-m", kPairTarget, "--prompts", kReadme},
            {"README.md", "line 1"}},
        Mistake{"inspect missing", {"inspect", "no-such-folder"}, {"no-such-folder"}},
        Mistake{
            "synth wrong recipe",
            {"synth", "--preset", "tiny", "--type", "q4_1", "-o", "x"},
            {"q4_1", "drafter"}},
        Mistake{"synth unknown preset", {"synth", "--preset", "huge", "-o", "x"}, {"huge", "tiny"}},
        Mistake{
            "synth nowhere",
            {"synth", "--preset", "tiny", "-o", "no/such/folder/x.gguf"},
            {"no/such/folder"}},
        Mistake{
            "synth quantised safetensors",
            {"synth", "--preset", "tiny", "--type", "q8_0", "--format", "safetensors", "-o", "x"},
            {"safetensors", "bf16"}}
    ),
    name_of
);

/// The exit code of octet with its streams where a shell puts them.
int exit_code_of(const std::string& arguments_and_streams) {
  const std::string command = shell_quoted(OCTET_PROGRAM) + " " + arguments_and_streams;
  const int status =
      std::system(command.c_str());  // NOLINT(concurrency-mt-unsafe): tests have one thread
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Output, WithoutRoomForItIsNoSuccess) {
  const TemporaryDirectory directory;
  for (const std::string arguments : {"--help", "inspect"}) {
    const std::string model = arguments == "inspect" ? " " + shell_quoted(kPairDrafter) : "";
    const std::string errors = directory.file("errors");
    EXPECT_EQ(exit_code_of(arguments + model + " >/dev/full 2>" + shell_quoted(errors)), 2);
    EXPECT_THAT(read_text(errors), HasSubstr("No space left on device")) << arguments;
  }
  EXPECT_EQ(exit_code_of("inspect no/such.gguf >/dev/null 2>/dev/full"), 2);
}

TEST(Pairing, DrafterWithAnotherTokenizerIsRefused) {
  const TemporaryDirectory directory;
  const auto drafter = open_checkpoint(kPairDrafter);
  Metadata metadata = drafter->metadata;
  std::vector<std::string_view> tokens = *metadata.find_strings("tokenizer.ggml.tokens");
  std::swap(tokens.at(400), tokens.at(401));
  metadata.set("tokenizer.ggml.tokens", MetadataArray(tokens));
  const std::string other = directory.file("other.gguf");
  write_gguf(other, metadata, drafter->tensors());
  for (const char* command : {"run", "verify"}) {
    std::vector<std::string> arguments = {command, "-m", kPairTarget, "-md", other};
    if (std::string(command) == "run") {
      arguments.insert(arguments.end(), {"-p", "x"});
    }
    const ProgramResult result = run_octet(arguments);
    EXPECT_EQ(result.exit_code, 2) << command;
    EXPECT_THAT(
        result.err, AllOf(HasSubstr("other.gguf"), HasSubstr("tokenizer"), HasSubstr("fit"))
    );
  }
}

TEST(Inspect, NamesOfFilesCannotCommandATerminal) {
  const TemporaryDirectory directory;
  const auto drafter = open_checkpoint(kPairDrafter);
  Metadata metadata = drafter->metadata;
  metadata.set(
      "general.\x1b[2Jkey",
      std::string("one\x1b[31m two\xc2\x9b"
                  "3m three\nfour \xc3\xa9")
  );
  const std::string other = directory.file("other.gguf");
  write_gguf(other, metadata, drafter->tensors());
  const ProgramResult result = run_octet({"inspect", other});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(
      result.out,
      AllOf(
          HasSubstr("general.\\x1b[2Jkey"),
          HasSubstr("one\\x1b[31m two\\x9b3m three\\nfour \xc3\xa9"),
          Not(HasSubstr("\x1b")),
          Not(HasSubstr("\xc2\x9b"))
      )
  );
}

TEST(Pairing, DrafterOfAnotherTargetIsRefusedWithBothNumbers) {
  const TemporaryDirectory directory;
  const std::string other = directory.file("other.gguf");
  ASSERT_EQ(
      run_octet({"synth",
                 "--preset",
                 "bolt-e4b",
                 "--kind",
                 "drafter",
                 "--type",
                 "q4_1",
                 "-o",
                 other,
                 "-q"})
          .exit_code,
      0
  );
  const ProgramResult run =
      run_octet({"run", "-m", kPairTarget, "-md", other, "-p", "x", "--embedding-scale", "1"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("256"), HasSubstr("2560")));
  const ProgramResult inspect = run_octet({"inspect", kPairTarget, other});
  EXPECT_EQ(inspect.exit_code, 2);
  EXPECT_THAT(inspect.out, HasSubstr("expected 256, found 2560: DOES NOT FIT"));
}

TEST(Help, NamesEveryCommandAndFlagsGroups) {
  const ProgramResult top = run_octet({"--help"});
  EXPECT_EQ(top.exit_code, 0);
  for (const char* command : {"run", "chat", "inspect", "verify", "synth"}) {
    EXPECT_THAT(top.out, HasSubstr(command));
    const ProgramResult help = run_octet({command, "--help"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_THAT(help.out, HasSubstr(std::string("octet ") + command));
  }
  EXPECT_THAT(
      run_octet({"run", "--help"}).out,
      AllOf(HasSubstr("-md"), HasSubstr("--draft-max"), HasSubstr("--temp"))
  );
  EXPECT_THAT(run_octet({"--version"}).out, testing::MatchesRegex("octet [0-9.]+\n"));
}

}  // namespace
}  // namespace octet::test
