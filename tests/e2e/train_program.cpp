// octet-train as a user runs it: a short training whose drafter octet loads and accepts drafts of,
// a resumed run, two processes that follow one, and refusals in one sentence.
#include <thread>

#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/engine/acceptance_replay.h"
#include "octet/formats/open_checkpoint.h"
#include "octet/models/load_model.h"
#include "octet/speculation/drafters/dflash_drafter.h"
#include "octet/text/load_tokenizer.h"
#include "octet/train/options.h"
#include "octet/train/state_file.h"
#include "octet/train/training_run.h"
#include "support/golden_text.h"
#include "support/model_runs.h"
#include "support/temporary_directory.h"

namespace octet::test {
namespace {

const std::string kTarget = OCTET_SOURCE_DIR "/models/bolt-tiny/bolt-tiny-q8_0.gguf";

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
};

std::string in_quotes(const std::string& text) {
  return "'" + text + "'";  // no argument here has a quote in it
}

std::string command_of(const std::vector<std::string>& arguments) {
  std::string command = in_quotes(OCTET_TRAIN_PROGRAM);
  for (const std::string& argument : arguments) {
    command += " " + in_quotes(argument);
  }
  return command;
}

Outcome run_train(const std::vector<std::string>& arguments, const TemporaryDirectory& directory) {
  static int runs = 0;
  const std::string name = "run" + std::to_string(runs++);
  std::string command = in_quotes(OCTET_TRAIN_PROGRAM);
  for (const std::string& argument : arguments) {
    command += " " + in_quotes(argument);
  }
  command += " >" + in_quotes(directory.file(name + ".out")) + " 2>" +
             in_quotes(directory.file(name + ".err"));
  const int status = std::system(command.c_str());  // NOLINT(concurrency-mt-unsafe)
  return {
      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
      read_text(directory.file(name + ".out")),
      read_text(directory.file(name + ".err"))};
}

/// Dialogues of the corpus, as texts.
std::string corpus(const TemporaryDirectory& directory, int count) {
  const std::string file = directory.file("corpus.jsonl");
  const Outcome outcome =
      run_train({"corpus", "-o", file, "--dialogues", std::to_string(count)}, directory);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return file;
}

std::vector<std::string> short_run(
    const std::string& data, const std::string& output, const std::string& steps
) {
  return {"drafter",  "-m",      kTarget,     "--data", data,     "-o", output,     "--steps",
          steps,      "--batch", "2",         "-t",     "1",      "-q", "--layers", "1",
          "--window", "64",      "--anchors", "24",     "--seed", "3"};
}

void append(std::vector<std::string>& arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
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
  const std::string killed = command_of(part) + " >/dev/null 2>&1 & p=$!; while [ ! -f " +
                             in_quotes(state) + " ]; do sleep 0.01; done; kill -9 $p; wait $p";
  // NOLINTNEXTLINE(concurrency-mt-unsafe): tests have one thread
  ASSERT_NE(std::system(killed.c_str()), 0);
  EXPECT_FALSE(std::filesystem::exists(directory.file("part")));
  append(part, {"--resume"});
  const Outcome outcome = run_train(part, directory);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(
      read_text(directory.file("whole/model.safetensors")),
      read_text(directory.file("part/model.safetensors"))
  );
  auto other = part;
  append(other, {"--gamma", "5", "--force"});
  const Outcome refused = run_train(other, directory);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("gamma"), std::string::npos) << refused.err;
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
  const Outcome outcome = run_train(
      {"target",
       "--like",
       kTarget,
       "--data",
       data,
       "-o",
       folder,
       "--steps",
       "2",
       "--batch",
       "1",
       "--length",
       "64",
       "-t",
       "1",
       "-q"},
      directory
  );
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto checkpoint = open_checkpoint(folder);
  const auto ops = test_ops(1);
  const auto target = load_target(checkpoint, *ops, {});
  EXPECT_EQ(target->shape().vocabulary, 4096);
  EXPECT_EQ(load_tokenizer(*checkpoint)->vocabulary_size(), 4096);
}

std::vector<std::string> with(
    std::vector<std::string> arguments, const std::vector<std::string>& more
) {
  append(arguments, more);
  return arguments;
}

/// In this process: starting one loads all of libtorch.
struct RunCommand {
  int operator()(const train::HelpNotice& /*notice*/) const { return 0; }
  int operator()(const train::DrafterArguments& a) const { return train::train_drafter(a); }
  int operator()(const train::TargetArguments& a) const { return train::train_target(a); }
  int operator()(const train::CorpusArguments& a) const { return train::write_corpus(a); }
  int operator()(const train::SamplesArguments& a) const { return train::write_samples(a); }
};

TEST(TrainProgram, RefusesInOneSentence) {
  const TemporaryDirectory directory;
  const std::string good = corpus(directory, 4);
  const std::string bad =
      directory.write("bad.jsonl", "{\"tokens\": [1, 2, 3, 4]}\n{\"tokens\": [9999, 1, 1]}\n");
  const std::string empty = directory.write("empty.jsonl", "");
  const std::vector<std::pair<std::vector<std::string>, const char*>> cases = {
      {{}, "octet-train"},
      {{"drafter"}, "--"},
      {short_run(bad, directory.file("o"), "1"), "line 2"},
      {short_run(empty, directory.file("o"), "1"), "no text"},
      {short_run(directory.file("absent"), directory.file("o"), "1"), "absent"},
      {short_run(good, directory.file("no/where/o"), "1"), "no/where"},
      {short_run(good, directory.path(), "1"), "--force"},
      {with(short_run(good, directory.file("o"), "1"), {"--html", directory.file("no/where/p")}),
       "--html"},
      {{"drafter", "-m", good, "--data", good, "-o", directory.file("o")}, "corpus.jsonl"},
      {{"target",
        "--like",
        kTarget,
        "--data",
        good,
        "-o",
        directory.file("o"),
        "--length",
        "100000"},
       "--length"},
      {{"drafter", "-m", kTarget, "--data", good, "-o", directory.file("o"), "--processes", "2"},
       "--meet"},
      {{"drafter", "-m", kTarget, "--data", good, "-o", directory.file("o"), "--taps", "1,9"},
       "layer 9"},
      {{"drafter", "-m", kTarget, "--data", good, "-o", directory.file("o"), "--resume"},
       "--state"},
  };
  for (const auto& [arguments, says] : cases) {
    try {
      std::visit(RunCommand{}, train::parse_train_arguments(arguments));
      ADD_FAILURE() << says << ": was not refused";
    } catch (const Error& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find(says), std::string::npos) << says << ": " << what;
      EXPECT_EQ(what.find('\n'), std::string::npos) << what;
    }
    EXPECT_FALSE(std::filesystem::exists(directory.file("o"))) << says;
  }
  const Outcome refused = run_train(short_run(bad, directory.file("o"), "1"), directory);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("line 2"), std::string::npos) << refused.err;
  auto skipping = short_run(bad, directory.file("o"), "1");
  append(skipping, {"--skip-bad-lines"});
  const Outcome outcome = run_train(skipping, directory);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("line 2"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace octet::test
