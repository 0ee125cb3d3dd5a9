// octet-train as a user runs it: a short training whose drafter octet loads and accepts drafts of,
// a resumed run, two processes that follow one, and refusals in one sentence.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <span>

#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/engine/acceptance_replay.h"
#include "octet/formats/json_value.h"
#include "octet/formats/open_checkpoint.h"
#include "octet/formats/rope_frequencies.h"
#include "octet/models/load_model.h"
#include "octet/speculation/drafters/dflash_drafter.h"
#include "octet/text/load_tokenizer.h"
#include "octet/train/corpus/withheld.h"
#include "octet/train/options.h"
#include "octet/train/state_file.h"
#include "octet/train/training_run.h"
#include "support/conversions.h"
#include "support/golden_text.h"
#include "support/model_runs.h"
#include "support/temporary_directory.h"
#include "support/train_runs.h"

namespace octet::test {
namespace {

/// The first `count` lines of a file, as a file.
std::string first_lines(const TemporaryDirectory& directory, const std::string& file, int count) {
  const std::string text = read_text(file);
  size_t end = 0;
  for (int i = 0; i < count; ++i) {
    end = text.find('\n', end) + 1;
  }
  return directory.write("first.jsonl", text.substr(0, end));
}

/// A short training of a target.
std::vector<std::string> like_run(
    const std::string& data, const std::string& output, const std::vector<std::string>& more
) {
  return with(
      {"target",
       "--like",
       kTarget,
       "--data",
       data,
       "-o",
       output,
       "--steps",
       "1",
       "--batch",
       "1",
       "-t",
       "1",
       "-q"},
      more
  );
}

TEST(TrainProgram, AShortRunMakesADrafterThatIsAccepted) {
  const TemporaryDirectory directory;
  const std::string data = corpus(directory, 60);
  const std::string folder = directory.file("drafter");
  auto arguments = short_run(data, folder, "40");
  append(
      arguments,
      {"--validation", data, "--validation-tokens", "200", "--html", directory.file("run.html")}
  );
  const Outcome outcome = run_train(arguments, directory);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string page = read_text(directory.file("run.html"));
  EXPECT_NE(page.find("<svg"), std::string::npos);
  EXPECT_NE(page.find("mean acceptance length"), std::string::npos);

  const auto ops = test_ops(1);
  const auto checkpoint = open_checkpoint(kTarget);
  const auto target = load_target(checkpoint, *ops, {});
  const auto tokenizer = load_tokenizer(*checkpoint);
  DFlashDrafter drafter(load_drafter(open_checkpoint(folder), *ops, *target, {}), 30.0F);
  const ReplayVariant variant{"trained", &drafter};
  ReplayRequest request;
  std::vector<std::vector<TokenId>> prompts;
  for (const char* text :
       {"<|turn>user\nWhat is 20 plus 7?<turn|>\n<|turn>model\n",
        "<|turn>user\nDescribe a wolf.<turn|>\n<|turn>model\n",
        "<|turn>user\nTell me a story about a fox.<turn|>\n<|turn>model\n"}) {
    prompts.push_back(tokenizer->with_bos(tokenizer->encode(text, SpecialTokens::kParse)));
  }
  request.prompts = prompts;
  request.max_tokens = 60;
  const auto result = replay_acceptance(*target, {&variant, 1}, request);
  EXPECT_GT(result.variants[0].pooled.mean_acceptance_length(), 1.02);
  EXPECT_GT(result.variants[0].pooled.accepted, 0);
}

TEST(TrainProgram, AKilledRunResumedWritesTheSameDrafter) {
  const TemporaryDirectory directory;
  const std::string data = corpus(directory, 20);
  auto whole = short_run(data, directory.file("whole"), "12");
  append(whole, {"--state", directory.file("whole.state"), "--save-every", "2"});
  ASSERT_EQ(run_train(whole, directory).exit_code, 0);

  const std::string state = directory.file("part.state");
  auto part = short_run(data, directory.file("part"), "12");
  append(part, {"--state", state, "--save-every", "2"});
  // Ends also when the program ends before it saved, or does neither for some minutes.
  const std::string killed = command_of(part) + " >/dev/null 2>&1 & p=$!; n=0; while [ ! -f " +
                             in_quotes(state) +
                             " ] && kill -0 $p && [ $n -lt 12000 ]; do sleep 0.01; n=$((n+1)); "
                             "done; kill -9 $p; wait $p";
  // NOLINTNEXTLINE(concurrency-mt-unsafe): tests have one thread
  ASSERT_NE(std::system(killed.c_str()), 0);
  EXPECT_FALSE(std::filesystem::exists(directory.file("part")));
  ASSERT_TRUE(std::filesystem::exists(state));
  const Outcome forgotten = run_train(part, directory);
  EXPECT_EQ(forgotten.exit_code, 2);
  EXPECT_NE(forgotten.err.find("--resume"), std::string::npos) << forgotten.err;
  append(part, {"--resume"});
  const Outcome outcome = run_train(part, directory);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(
      read_text(directory.file("whole/model.safetensors")),
      read_text(directory.file("part/model.safetensors"))
  );
}

std::vector<double> losses_of(const std::string& state) {
  return train::parse_record(train::read_state_file(state).facts.notes).losses;
}

TEST(TrainProgram, TwoProcessesFollowOne) {
  const TemporaryDirectory directory;
  const std::string data = corpus(directory, 20);
  auto one = short_run(data, directory.file("one"), "4");
  append(one, {"--state", directory.file("one.state"), "--precision", "f32"});
  ASSERT_EQ(run_train(one, directory).exit_code, 0);
  const std::string meet = "127.0.0.1:" + std::to_string(20000 + ::getpid() % 20000);
  std::string command;
  for (const char* rank : {"1", "0"}) {
    auto each = short_run(data, directory.file("two"), "4");
    append(
        each,
        {"--state",
         directory.file("two.state"),
         "--precision",
         "f32",
         "--processes",
         "2",
         "--rank",
         rank,
         "--meet",
         meet}
    );
    command +=
        command_of(each) + " 2>" + in_quotes(directory.file(std::string("rank") + rank + ".err"));
    command += std::string(rank) == "1" ? " & " : "; first=$?; wait $! && exit $first";
  }
  const int status = std::system(command.c_str());  // NOLINT(concurrency-mt-unsafe)
  ASSERT_EQ(WEXITSTATUS(status), 0)
      << read_text(directory.file("rank0.err")) << read_text(directory.file("rank1.err"));
  const auto expected = losses_of(directory.file("one.state"));
  const auto found = losses_of(directory.file("two.state"));
  ASSERT_EQ(found.size(), 4U);
  ASSERT_EQ(expected.size(), 4U);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-3 * expected[i]) << "step " << i;
  }
}

TEST(TrainProgram, ASmallTargetThatTheEngineOpens) {
  const TemporaryDirectory directory;
  const std::string data = corpus(directory, 40);
  const std::string folder = directory.file("target");
  const Outcome outcome = run_train(like_run(data, folder, {"--length", "64"}), directory);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto checkpoint = open_checkpoint(folder);
  const auto ops = test_ops(1);
  const auto target = load_target(checkpoint, *ops, {});
  EXPECT_EQ(target->shape().vocabulary, 4096);
  EXPECT_EQ(load_tokenizer(*checkpoint)->vocabulary_size(), 4096);
}

TEST(TrainProgram, AWithheldDialogueIsNotInTheCorpus) {
  const TemporaryDirectory directory;
  const std::string judged = corpus(directory, 60);
  const std::string file = directory.file("learned.jsonl");
  const Outcome outcome = run_train(
      {"corpus", "-o", file, "--dialogues", "200", "--withhold", judged, "--withhold", judged},
      directory
  );
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  train::Withheld withheld;
  train::withhold_file(judged, withheld);
  std::ifstream lines(file);
  std::string line;
  int count = 0;
  for (; std::getline(lines, line); ++count) {
    EXPECT_FALSE(withheld.holds(*parse_json(std::as_bytes(std::span(line))).find_string("text")));
  }
  EXPECT_EQ(count, 200);
  expect_refusal({"corpus", "-o", judged, "--withhold", judged, "--force"}, "corpus.jsonl");
}

TEST(TrainProgram, RefusesInOneSentence) {
  const TemporaryDirectory directory;
  const std::string good = corpus(directory, 4);
  const std::string bad =
      directory.write("bad.jsonl", "{\"tokens\": [1, 2, 3, 4]}\n{\"tokens\": [9999, 1, 1]}\n");
  const std::string empty = directory.write("empty.jsonl", "");
  const std::string there = directory.write("there", "");
  const std::string output = directory.file("o");
  const std::vector<std::string> small = {"drafter", "-m", kTarget, "--data", good, "-o", output};
  const std::vector<std::pair<std::vector<std::string>, const char*>> cases = {
      {{}, "A subcommand is required"},
      {{"drafter"}, "is required"},
      {short_run(bad, output, "1"), "line 2"},
      {short_run(empty, output, "1"), "no text"},
      {short_run(directory.file("absent"), output, "1"), "absent"},
      {short_run(good, directory.file("no/where/o"), "1"), "no/where"},
      {short_run(good, there, "1"), "add --force"},
      {{"corpus", "-o", there}, "add --force"},
      {with(small, {"--html", directory.file("no/where/p")}), "--html"},
      {with(small, {"--state", directory.file("no/where/s")}), "--state"},
      {{"drafter", "-m", good, "--data", good, "-o", output}, "corpus.jsonl"},
      {like_run(good, output, {"--length", "100000"}), "--length"},
      {with(small, {"--processes", "2"}), "--meet"},
      {with(small, {"--taps", "1,9"}), "layer 9"},
      {with(small, {"--resume"}), "--state"},
      {with(small, {"--resume", "--state", directory.file("absent")}), "absent"},
  };
  for (const auto& [arguments, says] : cases) {
    expect_refusal(arguments, says);
    EXPECT_FALSE(std::filesystem::exists(output)) << says;
  }
  const Outcome refused = run_train(short_run(bad, output, "1"), directory);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("line 2"), std::string::npos) << refused.err;
  auto skipping = short_run(bad, output, "1");
  append(skipping, {"--skip-bad-lines"});
  const Outcome outcome = run_train(skipping, directory);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("line 2"), std::string::npos) << outcome.err;
}

TEST(TrainProgram, RefusesFlagsThatWouldDoNothing) {
  const std::vector<std::string> small = {"drafter", "-m", kTarget, "--data", "x", "-o", "y"};
  const std::vector<std::pair<std::vector<std::string>, const char*>> cases = {
      {{"--patience", "2"}, "--patience requires --validation"},
      {{"--validate-every", "2"}, "--validate-every requires --validation"},
      {{"--validation-tokens", "20"}, "--validation-tokens requires --validation"},
      {{"--save-every", "2"}, "--save-every requires --state"},
      {{"--rank", "0"}, "--rank requires --processes"},
      {{"--meet", "127.0.0.1:1"}, "--meet requires --processes"},
      {{"--init", kDrafter, "--init-scale", "0.02"}, "excludes"},
      {{"--init", kDrafter, "--layers", "3"}, "excludes"},
      {{"--warm-up", "0.5", "--flat", "0.4"}, "--warm-up 0.5 goes beyond --flat 0.4"},
      {{"--optimizer", "adamw", "--matrix-rate", "0.1"}, "--matrix-rate is the rate of Muon"},
  };
  for (const auto& [flags, says] : cases) {
    expect_refusal(with(small, flags), says);
  }
}

TEST(TrainProgram, NeverWritesOverWhatItReads) {
  const TemporaryDirectory directory;
  const std::string data = corpus(directory, 4);
  const std::string before = read_text(data);
  const std::string output = directory.file("o");
  expect_refusal(with(short_run(data, data, "1"), {"--force"}), "the same");
  expect_refusal(with(short_run(data, directory.path(), "1"), {"--force"}), "would be lost");
  expect_refusal(
      with(short_run(data, output, "1"), {"--validation", data, "--html", data}), "the same"
  );
  expect_refusal(with(short_run(data, output, "1"), {"--force", "--state", data}), "the same");
  expect_refusal({"samples", "-m", kTarget, "--data", data, "-o", data, "--force"}, "the same");
  const std::string both = directory.file("both");
  expect_refusal(
      with(short_run(data, output, "1"), {"--state", both, "--html", both}), "the same file"
  );
  EXPECT_EQ(read_text(data), before);
}

TEST(TrainProgram, ResumesNothingButTheRunThatWasSaved) {
  const TemporaryDirectory directory;
  const std::string data = corpus(directory, 8);
  const auto saved =
      with(short_run(data, directory.file("drafter"), "1"), {"--state", directory.file("state")});
  ASSERT_EQ(refusal(saved), "");
  const auto resumed = changed(with(saved, {"--resume"}), "-o", directory.file("o"));
  decoded_shipped_model("bolt-tiny-q8_0", directory);
  const std::vector<std::pair<const char*, std::string>> changes = {
      {"-m", directory.file("bolt-tiny-q8_0")},
      {"--data", first_lines(directory, data, 7)},
      {"--taps", "1,2,3"},
      {"--window", "32"},
      {"--block", "7"},
      {"--rope-base", "500000"},
      {"--embedding-scale", "3"},
      {"--init-scale", "0.02"},
      {"--layers", "2"},
      {"--heads", "2"},
      {"--anchors", "23"},
      {"--gamma", "5"},
      {"--teacher", "tokens"},
      {"--seed", "4"},
      {"--steps", "2"},
      {"--batch", "4"},
      {"--optimizer", "adamw"},
      {"--rate", "0.125"},
      {"--matrix-rate", "0.125"},
      {"--decay", "0.125"},
      {"--warm-up", "0.125"},
      {"--flat", "0.125"},
      {"--clip", "0.125"},
      {"--precision", "f32"},
  };
  for (const auto& [flag, value] : changes) {
    SCOPED_TRACE(flag);
    expect_refusal(changed(resumed, flag, value), "was saved by a run with other settings or data");
  }
  // The saved run's own drafter, which has its shape and none of its weights.
  expect_refusal(
      {"drafter",
       "-m",
       kTarget,
       "--data",
       data,
       "-o",
       directory.file("o"),
       "--steps",
       "1",
       "--batch",
       "2",
       "-t",
       "1",
       "-q",
       "--seed",
       "3",
       "--anchors",
       "24",
       "--init",
       directory.file("drafter"),
       "--state",
       directory.file("state"),
       "--resume"},
      "given weights"
  );
  EXPECT_EQ(refusal(resumed), "");
}

TEST(TrainProgram, ATargetsRunIsOfItsWeightsAndPieces) {
  const TemporaryDirectory directory;
  const std::string data = corpus(directory, 8);
  const std::vector<std::string> state = {"--state", directory.file("state")};
  ASSERT_EQ(refusal(with(like_run(data, directory.file("target"), {"--length", "64"}), state)), "");
  const auto resumed = with(like_run(data, directory.file("o"), {"--resume"}), state);
  const char* other = "was saved by a run with other settings or data";
  expect_refusal(with(resumed, {"--length", "64", "--init", kTarget}), other);
  expect_refusal(with(resumed, {"--length", "65"}), other);
  EXPECT_EQ(refusal(with(resumed, {"--length", "64"})), "");
}

/// The checkpoint with a tensor added, or another one in place of that of its name.
Checkpoint with_tensor(const std::shared_ptr<const Checkpoint>& source, LogicalTensor tensor) {
  Checkpoint result;
  result.path = source->path;
  result.metadata = source->metadata;
  result.storage.push_back(source);
  for (const LogicalTensor& own : source->tensors()) {
    if (own.name != tensor.name) {
      result.add(own);
    }
  }
  result.add(std::move(tensor));
  return result;
}

TEST(TrainProgram, RefusesModelsThatItCannotTrain) {
  const TemporaryDirectory directory;
  const std::string data = corpus(directory, 8);
  const std::string output = directory.file("o");
  const std::string small = OCTET_SOURCE_DIR "/tests/golden/tiny/tiny-bf16.gguf";
  expect_refusal(like_run(data, output, {"--init", small}), "do not fit");
  expect_refusal(like_run(data, output, {"--init", kDrafter}), "expected a gemma4 target");
  expect_refusal({"target", "--like", kDrafter, "--data", data, "-o", output}, "gemma4 target");

  const auto target = open_checkpoint(kTarget);
  LogicalTensor divisors = target->at(kRopeFrequenciesName);
  std::vector<std::byte> bytes(divisors.data.begin(), divisors.data.end());
  const float odd = 3.0F;
  std::memcpy(bytes.data(), &odd, sizeof(odd));
  divisors.data = bytes;
  const std::string slowed = directory.file("slowed.gguf");
  convert_to_gguf(with_tensor(target, divisors), slowed);
  expect_refusal({"target", "--like", slowed, "--data", data, "-o", output}, "slowed.gguf");

  LogicalTensor head = target->at("token_embd.weight");
  head.name = "output.weight";
  const std::string headed = directory.file("headed.gguf");
  convert_to_gguf(with_tensor(open_checkpoint(kDrafter), head), headed);
  expect_refusal(
      {"drafter", "-m", kTarget, "--init", headed, "--data", data, "-o", output},
      "output head of its own"
  );
  EXPECT_FALSE(std::filesystem::exists(output));
}

TEST(TrainProgram, AnInitialDrafterKeepsTheFactorOfItsEmbeddings) {
  const TemporaryDirectory directory;
  const std::string data = corpus(directory, 8);
  Checkpoint silent = *open_checkpoint(kDrafter);
  silent.metadata.erase("dflash.embedding_scale");
  const std::string initial = directory.file("silent.gguf");
  convert_to_gguf(silent, initial);
  const auto run = [&](const std::string& output, const std::vector<std::string>& more) {
    return with(
        {"drafter",
         "-m",
         kTarget,
         "--init",
         initial,
         "--data",
         data,
         "-o",
         directory.file(output),
         "--steps",
         "1",
         "-t",
         "1",
         "-q"},
        more
    );
  };
  expect_refusal(run("o", {}), "does not say the factor of its embeddings");
  ASSERT_EQ(refusal(run("o", {"--embedding-scale", "16"})), "");
  const auto trained = open_checkpoint(directory.file("o"));
  EXPECT_EQ(trained->metadata.find_number("dflash.embedding_scale"), 16.0);
}

TEST(TrainProgram, InterruptedSamplesGoOnAndAreTheSame) {
  const TemporaryDirectory directory;
  const std::string data = corpus(directory, 8);
  const auto samples = [&](const char* name) {
    return std::vector<std::string>{
        "samples",
        "-m",
        kTarget,
        "--data",
        data,
        "-o",
        directory.file(name),
        "--count",
        "3",
        "--length",
        "24",
        "--prompt-tokens",
        "8",
        "-t",
        "1"};
  };
  ASSERT_EQ(refusal(samples("whole")), "");
  const std::string whole = read_text(directory.file("whole"));
  ASSERT_EQ(std::count(whole.begin(), whole.end(), '\n'), 3);
  const std::string begun = whole.substr(0, whole.find('\n') + 10);
  directory.write("part.partial", begun);
  expect_refusal(with(samples("part"), {"--seed", "9"}), "other texts or settings");
  const Outcome outcome = run_train(samples("part"), directory);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("1 of them from an earlier run"), std::string::npos) << outcome.out;
  EXPECT_EQ(read_text(directory.file("part")), whole);
  EXPECT_FALSE(std::filesystem::exists(directory.file("part.partial")));
  // They are texts that a drafter learns from.
  EXPECT_EQ(refusal(short_run(directory.file("part"), directory.file("drafter"), "1")), "");
}

}  // namespace
}  // namespace octet::test
