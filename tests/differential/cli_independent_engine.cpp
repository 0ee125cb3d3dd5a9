// The shipped target against an independent engine: greedy text token by token, until the first
// near-tie of the two best logits (there, and only there, two honest implementations may part), and
// the leads of the best logits along it, for every type of weight that octet makes.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "octet/formats/json_value.h"
#include "support/missing.h"
#include "support/run_program.h"

namespace octet::test {
namespace {

/// A lead below this can flip by the other engine's rounding of activations to 8 bits a block.
constexpr double kNearTie = 0.35;
/// And the mean over many leads stays below this: 0.02 to 0.04, where another type gives 0.08 to
/// 0.35.
constexpr double kMeanDifference = 0.06;

const std::string kDirectory = OCTET_SOURCE_DIR "/tests/differential";

const std::vector<std::string> kPrompts = {
    "What is the capital of Finland?",
    "What is a river?",
    "Tell me a short story about a fox.",
    "Give me a Python function that computes the factorial of a number.",
    "I have a silver breastplate for you. What is it worth?",
    "Start a 10 minute timer for the cake.",
    "Explain attention in two sentences.",
    "Do the little_dance move.",
    "What is 12 plus 30?",
    "Where is my order 4711?",
    "Say these words backwards: apple, stone, lamp.",
    "Give me the opening hours as JSON.",
};

struct Continuation {
  std::vector<int64_t> prompt_ids;
  std::vector<int64_t> ids;
  std::vector<double> margins;
};

Continuation ours(const std::string& target, const std::string& prompt) {
  const ProgramResult result = run_octet(
      {"run",
       "-m",
       target,
       "-md",
       kPairDrafter,
       "-t",
       "1",
       "-p",
       prompt,
       "--temp",
       "0",
       "-n",
       "96",
       "--json",
       "--margins"}
  );
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const JsonValue json = parse_json(bytes_of(result.out));
  Continuation continuation;
  for (const JsonValue& id : *json.find_array("prompt_ids")) {
    continuation.prompt_ids.push_back(id.integer().value());
  }
  for (const JsonValue& id : *json.find_array("ids")) {
    continuation.ids.push_back(id.integer().value());
  }
  for (const JsonValue& margin : *json.find_array("margins")) {
    continuation.margins.push_back(margin.number().value());
  }
  return continuation;
}

bool engine_is_installed() {
  return std::filesystem::exists(kDirectory + "/node_modules/@node-llama-cpp/linux-x64");
}

/// One line of answer for each line of requests.
std::vector<JsonValue> ask_engine(
    const TemporaryDirectory& directory, const std::string& target, const std::string& requests
) {
  const std::string command = "cd " + shell_quoted(kDirectory) +
                              " && node independent_engine.mjs " + shell_quoted(target) + " <" +
                              shell_quoted(directory.write("requests", requests)) + " >" +
                              shell_quoted(directory.file("answers"));
  EXPECT_EQ(
      std::system(command.c_str()), 0
  );  // NOLINT(concurrency-mt-unsafe): tests have one thread
  std::istringstream answers(read_text(directory.file("answers")));
  std::vector<JsonValue> values;
  for (std::string line; std::getline(answers, line);) {
    values.push_back(parse_json(bytes_of(line)));
  }
  return values;
}

void expect_same_continuations(const TemporaryDirectory& directory, const std::string& target) {
  std::vector<Continuation> continuations;
  std::string requests;
  for (const std::string& prompt : kPrompts) {
    continuations.push_back(ours(target, prompt));
    requests += "{\"prompt_ids\":[" +
                fmt::format("{}", fmt::join(continuations.back().prompt_ids, ",")) +
                "],\"tokens\":96,\"stop_ids\":[1,6,14]}\n";
  }
  const std::vector<JsonValue> answers = ask_engine(directory, target, requests);
  ASSERT_EQ(answers.size(), kPrompts.size());
  int64_t compared = 0;
  int64_t parted = 0;
  for (size_t i = 0; i < kPrompts.size(); ++i) {
    SCOPED_TRACE(kPrompts[i]);
    const JsonArray& theirs = *answers[i].find_array("ids");
    const Continuation& mine = continuations[i];
    size_t at = 0;
    while (at < mine.ids.size() && at < theirs.size() && mine.ids[at] == theirs[at].integer()) {
      ++at;
    }
    compared += static_cast<int64_t>(at);
    if (at < mine.ids.size() || at < theirs.size()) {
      ++parted;
      ASSERT_LT(at, mine.margins.size());
      EXPECT_LT(mine.margins[at], kNearTie) << "they part at token " << at;
    }
  }
  EXPECT_GE(compared, 100);
  EXPECT_LE(parted, static_cast<int64_t>(kPrompts.size()) / 3)
      << "near-ties cannot explain so many";
}

TEST(IndependentEngine, ContinuesPromptsWithTheSameTokens) {
  if (!engine_is_installed()) {
    OCTET_NEEDS("@node-llama-cpp/linux-x64 in " << kDirectory);
  }
  const TemporaryDirectory directory;
  expect_same_continuations(directory, kPairTarget);
}

TEST(IndependentEngine, ContinuesWithFilesThatWereConvertedAndQuantized) {
  if (!engine_is_installed()) {
    OCTET_NEEDS("@node-llama-cpp/linux-x64 in " << kDirectory);
  }
  const TemporaryDirectory directory;
  const std::string folder = directory.file("folder");
  const std::string back = directory.file("back.gguf");
  const std::string quantized = directory.file("q8_0.gguf");
  ASSERT_EQ(run_octet({"convert", kPairTarget, folder, "--dequantize", "-q"}).exit_code, 0);
  ASSERT_EQ(run_octet({"convert", folder, back, "-q"}).exit_code, 0);
  ASSERT_EQ(run_octet({"quantize", back, quantized, "--type", "Q8_0", "-q"}).exit_code, 0);
  expect_same_continuations(directory, quantized);
}

/// Mean and largest difference of two lists of leads.
struct LeadDifference {
  double mean = 0.0;
  double largest = 0.0;
  int64_t count = 0;
};

LeadDifference compare_leads(
    const TemporaryDirectory& directory,
    const std::string& target,
    const std::vector<Continuation>& continuations
) {
  std::string requests;
  for (const Continuation& continuation : continuations) {
    requests += fmt::format(
        "{{\"prompt_ids\":[{}],\"ids\":[{}]}}\n",
        fmt::join(continuation.prompt_ids, ","),
        fmt::join(continuation.ids, ",")
    );
  }
  const std::vector<JsonValue> answers = ask_engine(directory, target, requests);
  EXPECT_EQ(answers.size(), continuations.size());
  LeadDifference difference;
  for (size_t i = 0; i < answers.size(); ++i) {
    const JsonArray& leads = *answers[i].find_array("leads");
    EXPECT_EQ(leads.size(), continuations[i].margins.size());
    for (size_t k = 0; k < leads.size(); ++k) {
      const double apart = std::fabs(leads[k].number().value() - continuations[i].margins[k]);
      difference.mean += apart;
      difference.largest = std::max(difference.largest, apart);
      ++difference.count;
    }
  }
  difference.mean /= static_cast<double>(std::max<int64_t>(difference.count, 1));
  return difference;
}

/// The other engine gives the leads that octet gives for a form of the shipped target; `differs`:
/// it is another type than the shipped file's.
void expect_same_leads(
    const TemporaryDirectory& directory, const std::string& quantized, bool differs
) {
  std::vector<Continuation> continuations;
  for (size_t i = 0; i < 6; ++i) {
    continuations.push_back(ours(quantized, kPrompts[2 * i]));
  }
  const LeadDifference same = compare_leads(directory, quantized, continuations);
  // What another type does to the leads: the test must tell types apart.
  const LeadDifference other = compare_leads(directory, kPairTarget, continuations);
  SCOPED_TRACE(fmt::format(
      "{} leads: mean difference {:.4f}, largest {:.4f}; of another type {:.4f}, {:.4f}",
      same.count,
      same.mean,
      same.largest,
      other.mean,
      other.largest
  ));
  EXPECT_GE(same.count, 60);
  EXPECT_LT(same.mean, kMeanDifference);
  EXPECT_LT(same.largest, kNearTie);
  if (differs) {
    EXPECT_GT(other.mean, 2.0 * same.mean);
  }
}

class IndependentEngineTypes : public testing::TestWithParam<const char*> {};

TEST_P(IndependentEngineTypes, DecodesWhatWasQuantizedHereToTheSameLogits) {
  if (!engine_is_installed()) {
    OCTET_NEEDS("@node-llama-cpp/linux-x64 in " << kDirectory);
  }
  const TemporaryDirectory directory;
  const std::string quantized = directory.file("quantized.gguf");
  const ProgramResult made =
      run_octet({"quantize", kPairTarget, quantized, "--type", GetParam(), "-q"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  expect_same_leads(directory, quantized, GetParam() != std::string("Q8_0"));
}

TEST(IndependentEngine, DecodesWhatWasQuantizedByImportanceToTheSameLogits) {
  if (!engine_is_installed()) {
    OCTET_NEEDS("@node-llama-cpp/linux-x64 in " << kDirectory);
  }
  const TemporaryDirectory directory;
  const std::string importance = directory.file("importance.gguf");
  const std::string quantized = directory.file("quantized.gguf");
  const ProgramResult collected = run_octet(
      {"imatrix", "-m", kPairTarget, "--rollouts", "4", "-n", "64", "-o", importance, "-q"}
  );
  ASSERT_EQ(collected.exit_code, 0) << collected.err;
  const ProgramResult made = run_octet(
      {"quantize", kPairTarget, quantized, "--type", "Q4_K_M", "--imatrix", importance, "-q"}
  );
  ASSERT_EQ(made.exit_code, 0) << made.err;
  expect_same_leads(directory, quantized, true);
}

TEST(IndependentEngine, DecodesRepackedNVFP4ToTheSameLogits) {
  if (!engine_is_installed()) {
    OCTET_NEEDS("@node-llama-cpp/linux-x64 in " << kDirectory);
  }
  const TemporaryDirectory directory;
  const std::string folder = directory.file("folder");
  const std::string repacked = directory.file("repacked.gguf");
  // GGUF has blocks of 64 and that engine knows no scales of the per-layer gates.
  const ProgramResult quantized = run_octet(
      {"quantize",
       kPairTarget,
       folder,
       "--type",
       "NVFP4",
       "--exclude",
       "blk.*.proj",
       "--exclude",
       "blk.*.inp_gate",
       "-q"}
  );
  ASSERT_EQ(quantized.exit_code, 0) << quantized.err;
  const ProgramResult made = run_octet({"convert", folder, repacked, "-q"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  expect_same_leads(directory, repacked, true);
}
INSTANTIATE_TEST_SUITE_P(
    Types,
    IndependentEngineTypes,
    testing::Values(
        "Q8_0",
        "Q4_0",
        "Q4_1",
        "Q5_0",
        "Q5_1",
        "Q4_K",
        "Q5_K",
        "Q6_K",
        "IQ4_NL",
        "IQ4_XS",
        "MXFP4",
        "NVFP4",
        "Q4_K_M"
    ),
    [](const auto& type) { return std::string(type.param); }
);

}  // namespace
}  // namespace octet::test
