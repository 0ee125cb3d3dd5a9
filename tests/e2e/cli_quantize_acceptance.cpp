// What GPTQ costs a drafter in acceptance, as docs/quantization.md states it: the small trained
// pair, calibrated on the target's own replies, judged on what it answers to other prompts. Takes
// minutes, so it runs where every test must (OCTET_TEST_COMPLETE).

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/base/json_writer.h"
#include "octet/formats/json_value.h"
#include "support/golden_files.h"
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
std::vector<std::string> held_out_prompts(const std::string& path) {
  const std::string content = read_text(path);
  const JsonValue dialogues = parse_json(bytes_of(content));
  std::vector<std::string> lines;
  std::set<std::string> known;
  for (const JsonValue& dialogue : *dialogues.array()) {
    const std::string& text = *dialogue.string();
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

TEST(Gptq, CostsADrafterAsLittleAsIsStated) {
  if (std::getenv("OCTET_TEST_COMPLETE") == nullptr) {  // NOLINT(concurrency-mt-unsafe)
    GTEST_SKIP() << "it takes minutes; set OCTET_TEST_COMPLETE";
  }
  const std::string pair = shared_path("models/bolt-tiny/");
  const std::string dialogues = shared_path("data/train/tiny_dialogues_heldout.json");
  for (const std::string& path : {pair + "bolt-tiny-bf16.gguf", dialogues}) {
    if (!exists(path)) {
      GTEST_SKIP() << path << " is not there";
    }
  }
  const TemporaryDirectory directory;
  const std::vector<std::string> prompts = held_out_prompts(dialogues);
  ASSERT_GT(prompts.size(), 4 * kCalibrationPrompts);
  std::string calibration;
  std::string judging;
  for (size_t i = 0; i < prompts.size(); ++i) {
    (i < kCalibrationPrompts ? calibration : judging) += prompts[i] + "\n";
  }
  directory.write("calibration.jsonl", calibration);
  directory.write("judging.jsonl", judging);
  const std::string target = pair + "bolt-tiny-bf16.gguf";
  const std::string drafter = pair + "bolt-tiny-dflash-bf16.gguf";
  // In percent: the published loss, and the one percent below which this many steps say little.
  for (const auto& [mode, limit] : {std::pair("w4a16", "2"), std::pair("w4a4", "3")}) {
    const std::string folder = directory.file(mode);
    std::vector<std::string> quantize = {
        "quantize", drafter, folder, "--type", "NVFP4", "--gptq", "--target", target, "-q"};
    quantize.insert(quantize.end(), {"--rollouts", std::to_string(kCalibrationPrompts)});
    quantize.insert(
        quantize.end(), {"-n", "200", "--prompts", directory.file("calibration.jsonl")}
    );
    if (std::string(mode) == "w4a4") {
      quantize.insert(quantize.end(), {"--activation", "w4a4"});
    }
    const ProgramResult made = run_octet(quantize);
    ASSERT_EQ(made.exit_code, 0) << made.err;
    std::vector<std::string> compare = {"compare", drafter, folder, "--target", target};
    compare.insert(compare.end(), {"--prompts", directory.file("judging.jsonl"), "-n", "96"});
    compare.insert(compare.end(), {"--activation", mode, "--max-acceptance-loss", limit});
    const ProgramResult judged = run_octet(compare);
    EXPECT_EQ(judged.exit_code, 0) << mode << '\n' << judged.out << judged.err;
    RecordProperty(mode, judged.out);
  }
}

}  // namespace
}  // namespace octet::test
