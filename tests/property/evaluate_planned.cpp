// The planner held against what comes: costs measured and replies recorded in one process, on the
// shipped pair.
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "octet/bench/cycle_bench.h"
#include "octet/bench/machine_probe.h"
#include "octet/evaluate/evaluation.h"
#include "octet/evaluate/plan.h"
#include "octet/evaluate/summary.h"
#include "octet/kernels/cpu/isa_table.h"
#include "octet/kernels/profiling_ops.h"
#include "octet/models/load_model.h"
#include "octet/speculation/drafters/dflash_drafter.h"
#include "support/shipped_pair.h"

namespace octet::test {
namespace {

constexpr int64_t kContext = 64;  // about the middle of the replies below

/// The shipped pair where the bench can look in.
class MeasuredPair {
 public:
  MeasuredPair() {
    const std::string directory = OCTET_SOURCE_DIR "/models/bolt-tiny/";
    auto model =
        load_drafter(open_checkpoint(directory + "bolt-tiny-dflash-q8_0.gguf"), ops_, *target_, {});
    draft_model_ = model.get();
    drafter_ = std::make_unique<DFlashDrafter>(std::move(model), target_->final_softcap());
  }

  CycleCosts costs() {
    CycleBenchOptions options;
    options.contexts = {kContext};
    options.prompts = {};
    const CycleReport report = run_cycle_bench({*target_, draft_model_, probe_, ops_}, options);
    const auto ms = [&](const std::string& name) {
      const CycleRow* row = report.find(name, kContext);
      EXPECT_NE(row, nullptr) << name;
      return row == nullptr ? 1.0 : row->median_ms();
    };
    CycleCosts costs;
    ContextCosts& here = costs.contexts.emplace_back();
    here.context = kContext;
    here.forward_ms.push_back(ms("C_t"));
    for (int rows = 2; rows <= costs.block; ++rows) {
      here.forward_ms.push_back(ms(fmt::format("C_v({})", rows)));
    }
    here.draft_ms = ms("C_d");
    here.inject_ms = ms("inject(4)") / 4.0;
    return costs;
  }

  /// Plain and with each number of drafts.
  Evaluation measured(const std::vector<int>& drafts, std::span<const SuitePrompt> prompts) {
    EvalRequest request;
    request.prompts = prompts;
    request.thinking = false;
    request.max_tokens = 96;
    request.ignore_end = true;  // ends of replies cut blocks, which the plan does not count on
    request.arms = {{"plain", 0, false}};
    for (const int count : drafts) {
      request.arms.push_back({fmt::format("{} drafts", count), count, false});
    }
    EngineOptions options;
    options.context_length = 256;
    options.parallel = 1;
    Engine engine(*target_, *drafter_, tokenizer_, options);
    return evaluate(engine, ChatTemplate(BuiltinTemplate::kBolt), tokenizer_, request, [](int64_t) {
    });
  }

 private:
  ProfilingOps ops_{make_cpu_ops({.threads = 1, .isa = ""})};
  std::shared_ptr<const Checkpoint> checkpoint_ =
      open_checkpoint(OCTET_SOURCE_DIR "/models/bolt-tiny/bolt-tiny-q8_0.gguf");
  std::shared_ptr<const Tokenizer> tokenizer_ = load_tokenizer(*checkpoint_);
  std::unique_ptr<TargetModel> target_ = load_target(checkpoint_, ops_, {});
  DraftModel* draft_model_ = nullptr;  // inside drafter_
  std::unique_ptr<DFlashDrafter> drafter_;
  ThreadPool pool_{1};
  MachineProbe probe_{cpu::choose_table("").probe, pool_, int64_t{1} << 20};
};

AcceptanceProfile profile_of(const AcceptanceStatistics& acceptance) {
  AcceptanceProfile profile;
  for (int k = 0; k < acceptance.rows(); ++k) {
    profile.push_back(acceptance.conditional(k));
  }
  return profile;
}

std::vector<SuitePrompt> some_prompts() {
  std::vector<SuitePrompt> prompts;
  for (const char* text :
       {"What is the capital of Finland?",
        "Turn on the light in the kitchen.",
        "I want to hear a story with a mouse.",
        "What is 12 plus 30?",
        "Explain attention in two sentences.",
        "I am looking for a birthday present."}) {
    prompts.emplace_back().turns = {text};
  }
  return prompts;
}

double step_ms(const EvalRecord& record) {
  return (record.total_ms - record.first_token_ms) / static_cast<double>(record.acceptance.steps);
}

TEST(Plan, IsHeldByWhatComes) {
  MeasuredPair pair;
  const std::vector<int> drafts = {1, 3, 7};
  const std::vector<SuitePrompt> prompts = some_prompts();
  // Neighbours on the machine come and go: medians over rounds of what was planned, and over
  // replies of their steps' time against that of the plain reply written just before or after.
  std::vector<std::vector<double>> planned(drafts.size());
  std::vector<std::vector<double>> needs(drafts.size());
  std::vector<double> tokens(drafts.size());
  for (int round = 0; round < 5; ++round) {
    const CycleCosts costs = pair.costs();
    const Evaluation found = pair.measured(drafts, prompts);
    EXPECT_EQ(found.differing, 0);
    const ArmSummary longest = summarize(found.arms.back(), prompts);
    const AcceptanceProfile profile = profile_of(longest.acceptance);
    const std::vector<PlannedLength> plan = plan_drafts(costs, profile, {kContext, 1});
    for (size_t i = 0; i < drafts.size(); ++i) {
      const PlannedLength& length = plan[static_cast<size_t>(drafts[i])];
      const EvalArm& arm = found.arms[i + 1];
      tokens[i] = summarize(arm, prompts).acceptance.tokens_per_step();
      EXPECT_NEAR(length.tokens, tokens[i], 0.1 * tokens[i]) << drafts[i] << " drafts";
      planned[i].push_back(length.speedup);
      for (size_t r = 0; r < arm.records.size(); ++r) {
        needs[i].push_back(step_ms(arm.records[r]) / step_ms(found.arms.front().records[r]));
      }
    }
  }
  for (size_t i = 0; i < drafts.size(); ++i) {
    const double measured = tokens[i] / median(needs[i]);
    EXPECT_NEAR(median(planned[i]), measured, 0.25 * measured)
        << drafts[i] << " drafts: the speedup";
  }
}

}  // namespace
}  // namespace octet::test
