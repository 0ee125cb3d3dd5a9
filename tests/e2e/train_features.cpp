// A drafter from recorded features as a user makes it: `octet generate-data` records what the
// target has, octet-train learns from it and judges by it, octet loads the folder.
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/formats/open_checkpoint.h"
#include "octet/train/state_file.h"
#include "octet/train/training_run.h"
#include "support/conversions.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"
#include "support/train_runs.h"

namespace octet::test {
namespace {

using testing::HasSubstr;

const std::string kPrompts =
    "{\"turns\":[\"What is the capital of Finland?\",\"And of France?\"]}\n"
    "{\"turns\":[\"Turn on the light in the kitchen.\"]}\n"
    "{\"turns\":[\"I want to hear a story with a mouse.\"]}\n"
    "{\"turns\":[\"What is 12 plus 30?\"]}\n";

/// What the shipped target writes, as NAME.jsonl, and what it has meanwhile, as NAME.features.
std::string record(
    const TemporaryDirectory& directory,
    const std::string& name,
    const std::vector<std::string>& more = {"--teacher-states", "--feature-type", "f32"}
) {
  const std::string features = directory.file(name + ".features");
  const ProgramResult made = run_with_pair(
      "generate-data",
      with(
          {"--prompts",
           directory.write("prompts.jsonl", kPrompts),
           "--seed",
           "3",
           "--temp",
           "1",
           "-n",
           "40",
           "-o",
           directory.file(name + ".jsonl"),
           "--features",
           features},
          more
      )
  );
  EXPECT_EQ(made.exit_code, 0) << made.err;
  return features;
}

/// A short training on recorded features of the layers that the shipped drafter reads.
std::vector<std::string> recorded_run(
    const std::string& features, const std::string& output, const std::string& steps
) {
  auto arguments = short_run(features, output, steps);
  *std::find(arguments.begin(), arguments.end(), "--data") = "--features";
  return with(arguments, {"--taps", "1,2,3,4"});
}

TEST(TrainOnFeatures, IsTrainingOnTheTextsAndMakesADrafterThatOctetLoads) {
  const TemporaryDirectory directory;
  const std::string features = record(directory, "data");
  const std::string folder = directory.file("recorded");
  const Outcome outcome = run_train(
      with(
          recorded_run(features, folder, "6"),
          {"--validation-features",
           features,
           "--validate-every",
           "3",
           "--state",
           directory.file("recorded.state")}
      ),
      directory
  );
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const ProgramResult inspected = run_octet({"inspect", kTarget, folder});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.err;
  const ProgramResult replayed =
      run_octet({"eval", "replay", "-m", kTarget, "-md", folder, "--features", features, "-t", "1"}
      );
  EXPECT_EQ(replayed.exit_code, 0) << replayed.err;

  // What the engine has meanwhile is what was recorded.
  const auto by_engine = with(
      short_run(directory.file("data.jsonl"), directory.file("engine"), "6"), {"--taps", "1,2,3,4"}
  );
  ASSERT_EQ(run_train(by_engine, directory).exit_code, 0);
  const std::string weights = read_text(directory.file("engine/model.safetensors"));
  EXPECT_FALSE(weights.empty());
  EXPECT_TRUE(read_text(directory.file("recorded/model.safetensors")) == weights);

  const train::TrainingRecord seen =
      train::parse_record(train::read_state_file(directory.file("recorded.state")).facts.notes);
  ASSERT_EQ(seen.validations.size(), 2U);
  EXPECT_EQ(seen.validations[0].step, 3);
  EXPECT_GE(seen.validations[1].value, 1.0);
  EXPECT_LT(seen.validations[1].value, 8.0);
}

/// The shipped target whose layers give nothing but NaN: all but the first bytes of their matrices,
/// by which checkpoints are told apart, are spoiled.
std::string target_without_layers(const TemporaryDirectory& directory) {
  constexpr size_t kCompared = 4096;
  const auto source = open_checkpoint(kTarget);
  Checkpoint spoiled;
  spoiled.metadata = source->metadata;
  std::vector<std::vector<std::byte>> bytes;
  for (LogicalTensor tensor : source->tensors()) {
    if (tensor.name.starts_with("blk.") && tensor.data.size() > kCompared) {
      bytes.emplace_back(tensor.data.begin(), tensor.data.end());
      std::fill(bytes.back().begin() + kCompared, bytes.back().end(), std::byte{0xFF});
      tensor.data = bytes.back();
    }
    spoiled.add(tensor);
  }
  const std::string path = directory.file("spoiled.gguf");
  convert_to_gguf(spoiled, path);
  return path;
}

TEST(TrainOnFeatures, RunsNoLayerOfTheTarget) {
  const TemporaryDirectory directory;
  const std::string features = record(directory, "data");
  const auto learn = with(
      recorded_run(features, directory.file("whole"), "2"), {"--validation-features", features}
  );
  ASSERT_EQ(refusal(learn), "");
  const auto without = changed(learn, "-m", target_without_layers(directory));
  ASSERT_EQ(refusal(changed(without, "-o", directory.file("without"))), "");
  const std::string weights = read_text(directory.file("whole/model.safetensors"));
  EXPECT_FALSE(weights.empty());
  EXPECT_TRUE(read_text(directory.file("without/model.safetensors")) == weights);
  // Where they run, they spoil the weights.
  auto by_engine = changed(without, "--features", directory.file("data.jsonl"));
  *std::find(by_engine.begin(), by_engine.end(), "--features") = "--data";
  expect_refusal(changed(by_engine, "-o", directory.file("spoiled")), "finite");
}

TEST(TrainOnFeatures, ADrafterIsJudgedAlongRecordedRepliesAsReplayJudgesIt) {
  const TemporaryDirectory directory;
  const std::string features = record(directory, "data");
  // The shipped drafter, which a rate of 0 leaves as it is but for the rounding of its weights.
  const std::string state = directory.file("state");
  const std::string folder = directory.file("o");
  ASSERT_EQ(
      refusal({"drafter", "-m",
               kTarget,   "--init",
               kDrafter,  "--features",
               features,  "--validation-features",
               features,  "--validation-tokens",
               "100000",  "-o",
               folder,    "--state",
               state,     "--steps",
               "1",       "--rate",
               "0",       "--matrix-rate",
               "0",       "-t",
               "1",       "-q"}),
      ""
  );
  const train::TrainingRecord seen = train::parse_record(train::read_state_file(state).facts.notes);
  ASSERT_EQ(seen.validations.size(), 1U);
  const std::string value = fmt::format("{:.3f}", seen.validations[0].value);
  const ProgramResult replayed = run_octet(
      {"eval",
       "replay",
       "-m",
       kTarget,
       "-md",
       folder,
       "--features",
       features,
       "--no-attribution",
       "-t",
       "1"}
  );
  ASSERT_EQ(replayed.exit_code, 0) << replayed.err;
  EXPECT_THAT(replayed.out, HasSubstr(value));
  EXPECT_GT(seen.validations[0].value, 1.5);
}

TEST(TrainOnFeatures, ResumesWithTheSameRecordingAlone) {
  const TemporaryDirectory directory;
  const std::string features = record(directory, "data");
  const auto saved = with(
      recorded_run(features, directory.file("drafter"), "2"), {"--state", directory.file("state")}
  );
  ASSERT_EQ(refusal(saved), "");
  const auto resumed = changed(with(saved, {"--resume"}), "-o", directory.file("o"));
  const char* other = "was saved by a run with other settings or data";
  // The same texts, rounded; and the same texts without features.
  expect_refusal(
      changed(resumed, "--features", record(directory, "rounded", {"--teacher-states"})), other
  );
  auto by_engine = resumed;
  const auto flag = std::find(by_engine.begin(), by_engine.end(), "--features");
  *flag = "--data";
  *(flag + 1) = directory.file("data.jsonl");
  expect_refusal(by_engine, other);
  EXPECT_EQ(refusal(resumed), "");
}

TEST(TrainOnFeatures, RefusesFilesThatCannotTeachThisDrafter) {
  const TemporaryDirectory directory;
  const std::string output = directory.file("o");
  const std::string bare = record(directory, "bare", {});  // the taps alone
  const auto learn = [&](const std::string& features) {
    return recorded_run(features, output, "1");
  };
  expect_refusal(learn(bare), "--teacher-states");
  expect_refusal(changed(learn(bare), "--taps", "0,1"), "has no features of layer 0");
  expect_refusal(learn(directory.file("bare.jsonl")), "no file of recorded features");
  const std::string bytes = read_text(bare);
  expect_refusal(
      learn(directory.write("cut", bytes.substr(0, bytes.size() - 1))), "record it again"
  );
  expect_refusal(learn(directory.file("absent")), "absent");
  expect_refusal(with(learn(bare), {"--length", "20"}), "record 0: ");
  const std::string other = directory.file("q4.gguf");
  ASSERT_EQ(run_octet({"quantize", kTarget, other, "--type", "Q4_0", "-q"}).exit_code, 0);
  expect_refusal(changed(learn(bare), "-m", other), "was recorded with another target");
  const auto by_tokens = with(learn(bare), {"--teacher", "tokens"});
  expect_refusal(
      with(changed(by_tokens, "--taps", "1,2"), {"--validation-features", other}), "q4.gguf"
  );
  EXPECT_FALSE(std::filesystem::exists(output));
  const Outcome refused = run_train(learn(bare), directory);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("last layer (5)"));
  // The tokens can teach without the last layer.
  EXPECT_EQ(refusal(by_tokens), "");
}

TEST(TrainOnFeatures, RefusesFlagsThatContradictEachOther) {
  const std::vector<std::string> start = {"drafter", "-m", kTarget, "-o", "y"};
  expect_refusal(start, "(--data) or recorded ones (--features)");
  expect_refusal(with(start, {"--features", "x", "--data", "x"}), "excludes");
  expect_refusal(
      with(start, {"--features", "x", "--validation", "x", "--validation-features", "x"}),
      "excludes"
  );
  expect_refusal(with(start, {"--features", "x", "--patience", "2"}), "--validation-features");
  expect_refusal({"target", "--like", kTarget, "-o", "y"}, "--data is required");
  expect_refusal(
      {"target", "--like", kTarget, "-o", "y", "--data", "x", "--patience", "2"},
      "--patience requires --validation"
  );
  const ProgramResult alone = run_with_pair(
      "generate-data", {"--prompts", "x", "--seed", "1", "-o", "y", "--teacher-states"}
  );
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_THAT(alone.err, HasSubstr("--teacher-states requires --features"));
}

TEST(TrainOnFeatures, NeverWritesOverAFileOfFeatures) {
  const TemporaryDirectory directory;
  const std::string features = record(directory, "data");
  const std::string before = read_text(features);
  const auto learn = recorded_run(features, directory.file("o"), "1");
  expect_refusal(with(changed(learn, "-o", features), {"--force"}), "the same");
  expect_refusal(with(learn, {"--state", features, "--force"}), "the same");
  expect_refusal(
      with(
          short_run(directory.file("data.jsonl"), directory.file("o"), "1"),
          {"--validation-features", features, "--html", features}
      ),
      "the same"
  );
  EXPECT_TRUE(read_text(features) == before);
}

TEST(TrainOnFeatures, TheEngineMayJudgeWhatRecordsTaught) {
  const TemporaryDirectory directory;
  const std::string features = record(directory, "data");
  const std::string state = directory.file("state");
  ASSERT_EQ(
      refusal(with(
          recorded_run(features, directory.file("o"), "1"),
          {"--validation",
           directory.file("data.jsonl"),
           "--validation-tokens",
           "40",
           "--state",
           state}
      )),
      ""
  );
  const auto seen = train::parse_record(train::read_state_file(state).facts.notes);
  ASSERT_EQ(seen.validations.size(), 1U);
  EXPECT_GE(seen.validations[0].value, 1.0);
}

}  // namespace
}  // namespace octet::test
