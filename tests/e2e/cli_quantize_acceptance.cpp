// What GPTQ costs a drafter in acceptance, as docs/quantization.md states it: the shipped drafter
// decoded to BF16, calibrated on the shipped target's own replies, judged on what that answers to
// other prompts.

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/base/json_writer.h"
#include "octet/formats/json_value.h"
#include "support/conversions.h"
#include "support/held_out_dialogues.h"
#include "support/quantize_runs.h"
#include "support/run_program.h"

namespace octet::test {
namespace {

constexpr size_t kCalibrationPrompts = 60;

/// What stands in `text` between two others; "" when it is not there.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.find(begin);
  const size_t to = from == std::string::npos ? from : text.find(end, from + begin.size());
  return to == std::string::npos ? "" : text.substr(from + begin.size(), to - from - begin.size());
}

/// The first turns of held-out dialogues, each once, as lines of a file of prompts: system texts
/// without tools and thinking, which only the dialogues' own form has.
std::vector<std::string> held_out_prompts() {
  std::vector<std::string> lines;
  std::set<std::string> known;
  for (const std::string& text : held_out_dialogues()) {
    std::string system = between(text, "<|turn>system\n", "<turn|>");
    system = system.substr(0, system.find("<|tool>"));
    if (const size_t think = system.find("<|think|>"); think != std::string::npos) {
      system.erase(think, std::string("<|think|>").size());
    }
    JsonWriter json;
    json.begin_object();
    if (!system.empty()) {
      json.member("system", system);
    }
    json.key("turns").begin_array().value(between(text, "<|turn>user\n", "<turn|>")).end_array();
    json.end_object();
    if (known.insert(json.text()).second) {
      lines.push_back(json.text());
    }
  }
  return lines;
}

struct Cost {
  const char* mode;
  const char* limit;  // in percent, as published
  double measured;    // in percent; less than zero: a gain
};

// With vector code of x86.
constexpr Cost kCosts[] = {{"w4a16", "1", 0.22}, {"w4a4", "2", 1.49}};
// What other roundings of the same sums, of other instruction sets, may move.
constexpr double kTolerance = 0.35;

TEST(Gptq, CostsADrafterAsLittleAsIsStated) {
  const TemporaryDirectory directory;
  const std::vector<std::string> prompts = held_out_prompts();
  ASSERT_GT(prompts.size(), 4 * kCalibrationPrompts);
  std::string calibration;
  std::string judging;
  for (size_t i = 0; i < prompts.size(); ++i) {
    (i < kCalibrationPrompts ? calibration : judging) += prompts[i] + "\n";
  }
  directory.write("calibration.jsonl", calibration);
  directory.write("judging.jsonl", judging);
  // As drafters are published.
  const std::string drafter = decoded_shipped_model("bolt-tiny-dflash-q8_0", directory)->path;
  for (const Cost& cost : kCosts) {
    SCOPED_TRACE(cost.mode);
    const std::string folder = directory.file(cost.mode);
    std::vector<std::string> quantize = {
        "quantize", drafter, folder, "--type", "NVFP4", "--gptq", "--target", kPairTarget};
    quantize.insert(quantize.end(), {"--rollouts", std::to_string(kCalibrationPrompts)});
    quantize.insert(
        quantize.end(), {"-n", "200", "--prompts", directory.file("calibration.jsonl")}
    );
    quantize.insert(quantize.end(), {"--activation", cost.mode, "-q", "-t", "1"});
    const ProgramResult made = run_octet(quantize);
    ASSERT_EQ(made.exit_code, 0) << made.err;
    const ProgramResult judged = judge_drafter(
        drafter,
        folder,
        {"--prompts",
         directory.file("judging.jsonl"),
         "-n",
         "96",
         "--activation",
         cost.mode,
         "--max-acceptance-loss",
         cost.limit,
         "--json"}
    );
    EXPECT_EQ(judged.exit_code, 0) << judged.out << judged.err;
    RecordProperty(cost.mode, judged.out);
    const JsonValue json = parse_json(bytes_of(judged.out));
    EXPECT_NEAR(json.find_number("acceptance_loss_percent").value(), cost.measured, kTolerance);
    const JsonArray& drafters = *json.find_array("drafters");
    EXPECT_GT(drafters[0].find_integer("steps"), 1500) << "fewer say little";
    EXPECT_GT(drafters[0].find_number("acceptance_length"), 6.0);
  }
}

}  // namespace
}  // namespace octet::test
