// `octet generate-data` and `octet eval replay` as a user runs them, with the shipped pair.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/evaluate/feature_file.h"
#include "octet/formats/json_value.h"
#include "support/run_program.h"
#include "support/shipped_tokenizer.h"

namespace octet::test {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

const std::string kSuite =
    "{\"id\":\"a\",\"turns\":[\"What is the capital of Finland?\",\"And of France?\"]}\n"
    "{\"id\":\"b\",\"turns\":[\"Turn on the light in the kitchen.\"]}\n"
    "{\"id\":\"c\",\"turns\":[\"I want to hear a story with a mouse.\"]}\n"
    "{\"id\":\"d\",\"turns\":[\"What is a river?\"]}\n";

/// The command for the shipped target with that drafter on one thread (tests share the machine),
/// then `more`.
std::vector<std::string> with_drafter(
    const std::string& drafter, std::vector<std::string> command, std::vector<std::string> more
) {
  command.insert(command.end(), {"-m", kPairTarget, "-md", drafter, "-t", "1"});
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

std::vector<std::string> command_for(
    const TemporaryDirectory& directory, const std::string& prompts, std::vector<std::string> more
) {
  std::vector<std::string> command = with_drafter(
      kPairDrafter,
      {"generate-data"},
      {"--prompts", prompts, "--seed", "3", "--temp", "1", "-n", "48", "--thinking", "0.5"}
  );
  command.insert(
      command.end(),
      {"-o", directory.file("data.jsonl"), "--features", directory.file("data.features")}
  );
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

/// The first conversation's prompt as text, written with the flags `more`.
std::string first_prompt(const std::vector<std::string>& more) {
  const TemporaryDirectory directory;
  const std::string prompts = directory.write("prompts.jsonl", kSuite);
  std::vector<std::string> command = command_for(directory, prompts, {"--limit", "1"});
  command.insert(command.end(), more.begin(), more.end());
  const ProgramResult made = run_octet(command);
  EXPECT_EQ(made.exit_code, 0) << made.err;
  const std::string lines = read_text(directory.file("data.jsonl"));
  const JsonValue line = parse_json(bytes_of(lines.substr(0, lines.find('\n'))));
  std::vector<TokenId> prompt;
  for (const JsonValue& token : *line.find_array("tokens")) {
    prompt.push_back(static_cast<TokenId>(*token.integer()));
  }
  prompt.resize(static_cast<size_t>(line.find_integer("prompt_tokens").value()));
  return shipped_tokenizer()->decode(prompt);
}

TEST(GenerateData, AsksByTheChosenTemplate) {
  const TemporaryDirectory directory;
  const std::string own = directory.write("own.jinja", "{{ messages[0].content }}, robot:");
  EXPECT_THAT(first_prompt({}), HasSubstr("<|turn>user\nWhat is the capital of Finland?"));
  EXPECT_THAT(
      first_prompt({"--chat-template", own}), EndsWith("What is the capital of Finland?, robot:")
  );
}

TEST(GenerateData, WritesWhatReplayReads) {
  const TemporaryDirectory directory;
  const std::string prompts = directory.write("prompts.jsonl", kSuite);
  const ProgramResult made =
      run_octet(command_for(directory, prompts, {"--tap-neighbours", "--feature-type", "f32"}));
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("5 replies"));
  const std::string lines = read_text(directory.file("data.jsonl"));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 5);
  const JsonValue first = parse_json(bytes_of(lines.substr(0, lines.find('\n'))));
  EXPECT_EQ(*first.find_string("id"), "a");
  EXPECT_GT(std::ssize(*first.find_array("tokens")), first.find_integer("prompt_tokens").value());

  // Not twice under one name.
  const ProgramResult again = run_octet(command_for(directory, prompts, {}));
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("--force"));

  const std::vector<std::string> replay = with_drafter(
      kPairDrafter, {"eval", "replay"}, {"--features", directory.file("data.features")}
  );
  const ProgramResult table = run_octet(replay);
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("acceptance length"));
  EXPECT_THAT(table.out, HasSubstr("taps in reverse order"));
  EXPECT_THAT(table.out, HasSubstr("nothing that was tried is clearly better"));
  EXPECT_THAT(table.out, HasSubstr("its weights are rounded (Q8_0): --against "));
  std::vector<std::string> judged = replay;
  judged.insert(judged.end(), {"--json", "--min-acceptance", "7.9", "--against", kPairDrafter});
  const ProgramResult json = run_octet(judged);
  EXPECT_EQ(json.exit_code, 1) << json.err;
  const JsonValue result = parse_json(bytes_of(json.out));
  EXPECT_EQ(result.find_integer("replies"), 5);
  const double length = *result.find("all")->find_number("acceptance_length");
  EXPECT_GT(length, 1.5);
  for (const JsonValue& sentence : *result.find_array("verdict")) {
    EXPECT_THAT(*sentence.string(), Not(HasSubstr("rounded")));  // it was compared
  }
  EXPECT_EQ(
      *(*result.find_array("trials"))[0].find("acceptance")->find_number("acceptance_length"),
      length
  );
  // A wrong scale is named.
  std::vector<std::string> wrong = replay;
  wrong.insert(wrong.end(), {"--embedding-scale", "400"});
  EXPECT_THAT(run_octet(wrong).out, HasSubstr("embedding scale 16 would give "));

  // A damaged file and another target are refused.
  std::string damaged = read_text(directory.file("data.features"));
  damaged.resize(damaged.size() - 1);
  std::vector<std::string> broken = replay;
  broken.back() = directory.write("broken", damaged);
  const ProgramResult refused = run_octet(broken);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("does not end as a whole file does"));
  const std::string other = directory.file("q4.gguf");
  ASSERT_EQ(run_octet({"quantize", kPairTarget, other, "--type", "Q4_0", "-q"}).exit_code, 0);
  std::vector<std::string> mismatched = replay;
  mismatched[3] = other;
  const ProgramResult mismatch = run_octet(mismatched);
  EXPECT_EQ(mismatch.exit_code, 2);
  EXPECT_THAT(mismatch.err, HasSubstr("was recorded with another target"));
}

/// The layers that a run with these flags records.
std::vector<int> recorded_layers(std::vector<std::string> more) {
  const TemporaryDirectory directory;
  more.insert(more.end(), {"--limit", "1", "-q"});
  const ProgramResult made =
      run_octet(command_for(directory, directory.write("prompts.jsonl", kSuite), more));
  EXPECT_EQ(made.exit_code, 0) << made.err;
  return FeatureFile::open(directory.file("data.features")).header().taps;
}

TEST(GenerateData, RecordsTheLastLayerForTeachersAndOnce) {
  EXPECT_THAT(recorded_layers({"--teacher-states"}), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(
      recorded_layers({"--teacher-states", "--tap-neighbours"}), ElementsAre(1, 2, 3, 4, 0, 5)
  );
  EXPECT_THAT(recorded_layers({"--teacher-states", "--taps", "5", "0"}), ElementsAre(5, 0));
}

TEST(GenerateData, SaysWhichLineIsBadAndSkipsItOnWish) {
  const TemporaryDirectory directory;
  const std::string prompts = directory.write(
      "prompts.jsonl",
      kSuite + "{\"turns\":[]}\nno json\n{\"turns\":[\"" + std::string(60'000, 'x') + "\"]}\n"
  );
  const ProgramResult refused = run_octet(command_for(directory, prompts, {}));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("line 5"));
  EXPECT_FALSE(std::filesystem::exists(directory.file("data.jsonl")));
  const ProgramResult skipped =
      run_octet(command_for(directory, prompts, {"--skip-bad-lines", "-c", "1024"}));
  ASSERT_EQ(skipped.exit_code, 0) << skipped.err;
  EXPECT_THAT(skipped.err, HasSubstr("line 5"));
  EXPECT_THAT(skipped.err, HasSubstr("line 6"));
  EXPECT_THAT(skipped.err, HasSubstr("prompts.jsonl: line 7 got no reply: "));
  const std::string far = directory.write(
      "far.jsonl", kSuite + "\n\n{\"turns\":[\"" + std::string(60'000, 'x') + "\"]}\n"
  );
  const ProgramResult too_long = run_octet(command_for(directory, far, {"--force", "-c", "1024"}));
  EXPECT_EQ(too_long.exit_code, 2);
  EXPECT_THAT(too_long.err, HasSubstr("far.jsonl: line 7 got no reply: "));
  const ProgramResult penalised = run_octet(
      command_for(directory, prompts, {"--skip-bad-lines", "--force", "--repeat-penalty", "1.2"})
  );
  EXPECT_EQ(penalised.exit_code, 2);
  EXPECT_THAT(penalised.err, HasSubstr("penalties"));
}

TEST(GenerateData, KilledItLeavesNothingUnderTheNamesAndGoesOnLater) {
  const TemporaryDirectory directory;
  const std::string prompts = directory.write("prompts.jsonl", kSuite + kSuite + kSuite);
  const std::vector<std::string> plain =
      command_for(directory, prompts, {"--concurrency", "1", "-q"});
  ASSERT_EQ(run_octet(plain).exit_code, 0);
  const std::string lines = read_text(directory.file("data.jsonl"));
  const std::string features = read_text(directory.file("data.features"));
  std::filesystem::remove(directory.file("data.jsonl"));
  std::filesystem::remove(directory.file("data.features"));
  int killed = 0;
  for (int attempt = 0; attempt < 40 && !std::filesystem::exists(directory.file("data.jsonl"));
       ++attempt) {
    const pid_t child = ::fork();
    if (child == 0) {
      become_octet(plain);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(40 + 15 * attempt));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    killed += WIFSIGNALED(status) ? 1 : 0;
  }
  EXPECT_GT(killed, 0);
  if (!std::filesystem::exists(directory.file("data.jsonl"))) {
    ASSERT_EQ(run_octet(plain).exit_code, 0);
  }
  EXPECT_EQ(read_text(directory.file("data.jsonl")), lines);
  EXPECT_TRUE(read_text(directory.file("data.features")) == features);
}

TEST(GenerateData, WritesOverNothingThatItReadsAndNothingTwice) {
  const TemporaryDirectory directory;
  const std::string prompts = directory.write("prompts.jsonl", kSuite);
  const std::string partial = directory.write("suite.partial", kSuite);
  std::filesystem::create_directory(directory.file("folder"));
  std::filesystem::create_directory(directory.file("taken.partial"));
  std::filesystem::create_symlink(prompts, directory.file("link"));
  std::filesystem::create_directory_symlink(directory.path(), directory.file("here"));
  const struct {
    std::string prompts;
    std::string output;
    std::string features;
    const char* reason;
  } cases[] = {
      {prompts, "data", "data", "name the same file"},
      {prompts, "data", "here/data", "name the same file"},
      {prompts, "data", "data.partial", "name the same file"},
      {prompts, "prompts.jsonl", "data", "output and input are the same"},
      {prompts, "data", "prompts.jsonl", "output and input are the same"},
      {prompts, "link", "data", "output and input are the same"},
      {partial, "suite", "data", "output and input are the same"},
      {prompts, "folder", "data", "is a folder"},
      {prompts, "data", "folder", "is a folder"},
      {prompts, "taken", "data", "is a folder"},
  };
  for (const auto& [read, output, features, reason] : cases) {
    SCOPED_TRACE(testing::Message() << output << " and " << features);
    const ProgramResult refused = run_with_pair(
        "generate-data",
        {"--prompts",
         read,
         "--seed",
         "3",
         "--force",
         "-o",
         directory.file(output),
         "--features",
         directory.file(features)}
    );
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, HasSubstr(reason));
  }
  EXPECT_EQ(read_text(prompts), kSuite);
  EXPECT_EQ(read_text(partial), kSuite);
}

TEST(GenerateData, WithoutRoomItSaysSoAndGoesOnLater) {
  const TemporaryDirectory directory;
  const std::string prompts = directory.write("prompts.jsonl", kSuite);
  const std::vector<std::string> command = command_for(directory, prompts, {"-q"});
  ASSERT_EQ(run_octet(command).exit_code, 0);
  const std::string lines = read_text(directory.file("data.jsonl"));
  const std::string features = read_text(directory.file("data.features"));
  std::filesystem::remove(directory.file("data.jsonl"));
  std::filesystem::remove(directory.file("data.features"));
  constexpr int kBlock = 512;
  const auto all = static_cast<int>(features.size() / kBlock);
  ASSERT_GT(features.size(), 2 * lines.size()) << "it is the features that find no room";
  for (const int blocks : {1, all / 3, all}) {
    SCOPED_TRACE(blocks);
    const ProgramResult full = run_with_little_room(command, blocks);
    EXPECT_EQ(full.exit_code, 2);
    EXPECT_THAT(full.err, HasSubstr("data.features.partial: cannot write the file"));
    EXPECT_FALSE(std::filesystem::exists(directory.file("data.jsonl")));
    EXPECT_FALSE(std::filesystem::exists(directory.file("data.features")));
  }
  ASSERT_EQ(run_octet(command).exit_code, 0);
  EXPECT_EQ(read_text(directory.file("data.jsonl")), lines);
  EXPECT_TRUE(read_text(directory.file("data.features")) == features);
}

/// Of "..., K/V (bf16) 1.23 MB, ..." in a refusal: the number.
double kept_values(const std::string& refusal) {
  const std::string name = "K/V (bf16) ";
  const size_t at = refusal.find(name);
  return at == std::string::npos ? 0.0 : std::stod(refusal.substr(at + name.size()));
}

TEST(GenerateData, TheMemoryLimitCountsTheTextOfTheFeatures) {
  const TemporaryDirectory directory;
  const std::string prompts = directory.write("prompts.jsonl", kSuite);
  std::vector<std::string> command = {
      "--prompts",
      prompts,
      "--seed",
      "3",
      "-c",
      "4096",
      "--memory-limit",
      "1MB",
      "--concurrency",
      "2",
      "-o",
      directory.file("data.jsonl")};
  const double texts = kept_values(run_with_pair("generate-data", command).err);
  EXPECT_GT(texts, 0.0);
  command.insert(command.end(), {"--features", directory.file("data.features")});
  EXPECT_NEAR(kept_values(run_with_pair("generate-data", command).err), 1.5 * texts, 0.02 * texts);
}

TEST(GenerateData, ReplayReadsTheHeadBesideTheDrafter) {
  const TemporaryDirectory directory;
  const std::string prompts = directory.write("prompts.jsonl", kSuite);
  const std::string drafter = directory.file("drafter.gguf");
  std::filesystem::copy_file(kPairDrafter, drafter);
  ASSERT_EQ(run_octet(command_for(directory, prompts, {"-q"})).exit_code, 0);
  const auto replay = [&](const std::string& head) {
    const ProgramResult result = run_octet(with_drafter(
        drafter,
        {"eval", "replay"},
        {"--features",
         directory.file("data.features"),
         "--no-attribution",
         "--json",
         "--draft-head",
         head}
    ));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return parse_json(bytes_of(result.out));
  };
  const auto length = [](const JsonValue& json) {
    return *json.find("all")->find_number("acceptance_length");
  };
  const JsonValue none = replay("auto");
  EXPECT_EQ(none.find("draft_head"), nullptr);
  const ProgramResult stored = run_octet(with_drafter(
      drafter,
      {"draft-head"},
      {"--tokens", "64", "--text", directory.write("text", "A river is water.")}
  ));
  ASSERT_EQ(stored.exit_code, 0) << stored.err;
  const JsonValue small = replay("auto");
  ASSERT_NE(small.find_string("draft_head"), nullptr);
  EXPECT_THAT(*small.find_string("draft_head"), HasSubstr("64 of "));
  EXPECT_LT(length(small), length(none));
  const JsonValue full = replay("full");
  EXPECT_EQ(full.find("draft_head"), nullptr);
  EXPECT_EQ(length(full), length(none));
}

}  // namespace
}  // namespace octet::test
