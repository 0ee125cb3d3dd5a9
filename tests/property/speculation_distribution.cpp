// Law 3: sampled text follows the target's distribution, under both verification rules, whatever
// drafts. The joint law of the first three tokens is compared with the exact product; seeds are
// fixed, false alarms have probability 1e-6 a test.

#include <cmath>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "octet/speculation/cycle.h"
#include "octet/speculation/drafters/dflash_drafter.h"
#include "octet/speculation/drafters/no_drafter.h"
#include "support/goodness_of_fit.h"
#include "support/scripted_draft_model.h"
#include "support/scripted_target.h"
#include "support/sequence_runs.h"

namespace octet {
namespace {

constexpr int64_t kVocabulary = 5;
constexpr double kWidth = 1.5;
constexpr uint64_t kTargetSeed = 77;
constexpr int kTokens = 3;
constexpr uint64_t kDraws = 12000;

struct Setting {
  const char* name;
  SamplingParams sampling;
  VerifyRule rule;
  DraftChoice choice;
  double noise_width;   // of the drafter against the target; negative: no drafter
  bool adapts = false;  // by the block policy
};

std::vector<double> exact_joint(const SamplingParams& params, const std::vector<TokenId>& prompt) {
  std::vector<double> joint(125, 0.0);
  for (size_t cell = 0; cell < joint.size(); ++cell) {
    std::vector<TokenId> text = prompt;
    PenaltyWindow window(params, prompt);
    double p = 1.0;
    size_t rest = cell;
    for (int i = 0; i < kTokens; ++i) {
      std::vector<float> logits(kVocabulary);
      test::pseudo_random_logits(test::text_name(text), kTargetSeed, kWidth, logits);
      const Sampler sampler(params, kVocabulary);
      sampler.adjust(logits, window);
      const auto token = static_cast<TokenId>(rest % kVocabulary);
      rest /= kVocabulary;
      p *= sampler.distribution(logits).probability(token);
      text.push_back(token);
      window.push(token);
    }
    joint[cell] = p;
  }
  return joint;
}

double misfit_of(const Setting& setting) {
  test::ScriptedTarget target(kVocabulary, test::pseudo_random_rule(kTargetSeed, kWidth));
  std::unique_ptr<Drafter> drafter = std::make_unique<NoDrafter>();
  if (setting.noise_width >= 0.0) {
    drafter = std::make_unique<DFlashDrafter>(
        std::make_unique<test::ScriptedDraftModel>(
            target, test::ForesightSettings{kTargetSeed, kWidth, setting.noise_width}
        ),
        0.0F
    );
  }
  test::RunSettings run;
  run.prompt = {1, 2};
  run.rule = setting.rule;
  run.draft_choices.rows = {setting.choice};
  run.sampling = setting.sampling;
  run.adapt_drafts = setting.adapts;
  run.max_tokens =
      kTokens + 2;  // so that drafts are long enough to be cut short by chance, not by the limit
  std::vector<int64_t> counts(125, 0);
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    run.sampling.seed = seed;
    const std::vector<TokenId> reply = test::run(target, *drafter, run).reply;
    ++counts[static_cast<size_t>(reply[0] + kVocabulary * (reply[1] + kVocabulary * reply[2]))];
  }
  return test::misfit(counts, exact_joint(setting.sampling, run.prompt));
}

SamplingParams plain_temperature() {
  SamplingParams params;
  params.temperature = 0.9F;
  return params;
}

SamplingParams filtered() {
  SamplingParams params;
  params.temperature = 1.1F;
  params.top_k = 4;
  params.top_p = 0.9F;
  params.min_p = 0.02F;
  return params;
}

SamplingParams penalised() {
  SamplingParams params = filtered();
  params.presence_penalty = 0.7F;
  params.repetition_penalty = 1.3F;
  params.logit_bias = {{2, 0.5F}};
  return params;
}

TEST(SampledText, FollowsTheTargetsDistribution) {
  const auto kCompare = VerifyRule::kCompare;
  const auto kRatio = VerifyRule::kRatio;
  const auto kArgmax = DraftChoice::kArgmax;
  const auto kCoupled = DraftChoice::kCoupled;
  const auto kBySureness = DraftChoice::kBySureness;
  const std::vector<Setting> settings = {
      {"plain", plain_temperature(), kCompare, kArgmax, -1.0},
      {"plain, filtered", filtered(), kCompare, kArgmax, -1.0},
      {"compare, argmax", filtered(), kCompare, kArgmax, 1.0},
      {"compare, coupled", filtered(), kCompare, kCoupled, 1.0},
      {"compare, coupled, exact drafter", plain_temperature(), kCompare, kCoupled, 0.0},
      {"compare, penalised", penalised(), kCompare, kCoupled, 1.0},
      {"compare, by sureness", filtered(), kCompare, kBySureness, 1.0},
      {"compare, by sureness, adaptive", filtered(), kCompare, kBySureness, 1.0, true},
      {"ratio", plain_temperature(), kRatio, kArgmax, 1.0},
      {"ratio, filtered", filtered(), kRatio, kArgmax, 1.0},
      {"ratio, adaptive", filtered(), kRatio, kArgmax, 1.0, true},
      {"ratio, exact drafter", filtered(), kRatio, kArgmax, 0.0},
      {"ratio, hopeless drafter", filtered(), kRatio, kArgmax, 20.0},
      {"ratio, penalised", penalised(), kRatio, kArgmax, 1.0}};
  for (const Setting& setting : settings) {
    EXPECT_LT(misfit_of(setting), test::kFalseAlarmDeviations) << setting.name;
  }
}

// The test above can fail: the law of a slightly different temperature is told apart.
TEST(SampledText, TheTestHasPower) {
  const Setting warm = {"", plain_temperature(), VerifyRule::kCompare, DraftChoice::kArgmax, -1.0};
  test::ScriptedTarget target(kVocabulary, test::pseudo_random_rule(kTargetSeed, kWidth));
  NoDrafter none;
  test::RunSettings run;
  run.prompt = {1, 2};
  run.max_tokens = kTokens;
  run.sampling = warm.sampling;
  run.sampling.temperature = 1.0F;
  std::vector<int64_t> counts(125, 0);
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    run.sampling.seed = seed;
    const std::vector<TokenId> reply = test::run(target, none, run).reply;
    ++counts[static_cast<size_t>(reply[0] + kVocabulary * (reply[1] + kVocabulary * reply[2]))];
  }
  EXPECT_GT(
      test::misfit(counts, exact_joint(warm.sampling, run.prompt)), test::kFalseAlarmDeviations
  );
}

// The better the drafter, the more the ratio rule and coupled drafts accept; an exact one is never
// refused.
TEST(SampledText, AnExactDrafterIsAlwaysAccepted) {
  for (const VerifyRule rule : {VerifyRule::kCompare, VerifyRule::kRatio}) {
    test::ScriptedTarget target(kVocabulary, test::pseudo_random_rule(kTargetSeed, kWidth));
    // Its guesses beyond the first row follow its own greedy path, so only the first row is exact
    // when sampling.
    DFlashDrafter drafter(
        std::make_unique<test::ScriptedDraftModel>(
            target, test::ForesightSettings{kTargetSeed, kWidth, 0.0}
        ),
        0.0F
    );
    test::RunSettings run;
    run.prompt = {1, 2};
    run.rule = rule;
    run.draft_choices.rows = {DraftChoice::kCoupled};
    run.sampling = filtered();
    run.max_tokens = 200;
    for (const SequenceStep& step : test::run(target, drafter, run).steps) {
      EXPECT_GE(step.accepted, std::min(1, step.drafted));
    }
  }
}

}  // namespace
}  // namespace octet
