// The block policy against a simulated machine: costs and acceptance are given, time is added up,
// nothing is timed.
#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "octet/speculation/block_policy.h"

namespace octet {
namespace {

constexpr int kDrafts = 7;

struct Machine {
  double plain_ms = 55.0;
  double row_ms = 4.0;  // what each further row adds
  double draft_ms = 16.0;

  double forward_ms(int rows) const { return plain_ms + row_ms * (rows - 1); }
};

/// Acceptance of row k + 1 given the rows before: constant `first`, falling by `slope` a row.
struct Text {
  double first = 0.8;
  double slope = 0.03;

  double conditional(int k) const { return std::clamp(first - slope * k, 0.0, 1.0); }
};

struct Outcome {
  int64_t tokens = 0;
  double ms = 0.0;
  double ms_per_token() const { return ms / static_cast<double>(tokens); }
};

int accepted_drafts(const Text& text, int drafts, std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  int accepted = 0;
  while (accepted < drafts && uniform(random) < text.conditional(accepted)) {
    ++accepted;
  }
  return accepted;
}

double step_ms(const Machine& machine, int drafts) {
  return machine.forward_ms(drafts + 1) + (drafts > 0 ? machine.draft_ms : 0.0);
}

double fixed_ms_per_token(const Machine& machine, const Text& text, int drafts) {
  double tokens = 1.0;
  double joint = 1.0;
  for (int k = 0; k < drafts; ++k) {
    joint *= text.conditional(k);
    tokens += joint;
  }
  return step_ms(machine, drafts) / tokens;
}

double best_fixed_ms_per_token(const Machine& machine, const Text& text) {
  double best = fixed_ms_per_token(machine, text, 0);
  for (int m = 1; m <= kDrafts; ++m) {
    best = std::min(best, fixed_ms_per_token(machine, text, m));
  }
  return best;
}

/// Runs a policy with fresh costs over `tokens` tokens; measured times scatter by `noise`
/// (relative).
Outcome simulate(
    const Machine& machine, const Text& text, int64_t tokens, double noise, uint64_t seed
) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> scatter(1.0, noise);
  StepCosts costs;
  BlockPolicy policy(costs, kDrafts);
  Outcome outcome;
  while (outcome.tokens < tokens) {
    const int drafts = policy.next_drafts();
    EXPECT_GE(drafts, 0);
    EXPECT_LE(drafts, kDrafts);
    const int accepted = accepted_drafts(text, drafts, random);
    outcome.tokens += accepted + 1;
    outcome.ms += step_ms(machine, drafts);
    costs.observe_forward(
        drafts + 1, machine.forward_ms(drafts + 1) * std::max(0.2, scatter(random))
    );
    if (drafts > 0) {
      costs.observe_draft(machine.draft_ms * std::max(0.2, scatter(random)));
    }
    policy.observe(drafts, accepted, std::min(accepted + 1, drafts));
  }
  return outcome;
}

const std::vector<Machine>& machines() {
  static const std::vector<Machine> all = {
      {.plain_ms = 55, .row_ms = 4, .draft_ms = 16},     // the goal of the project
      {.plain_ms = 55, .row_ms = 12, .draft_ms = 20},    // half of it
      {.plain_ms = 88, .row_ms = 55, .draft_ms = 180},   // drafting can never pay
      {.plain_ms = 1.0, .row_ms = 0.3, .draft_ms = 0.8}  // a small pair in cache
  };
  return all;
}

TEST(BlockPolicy, LosesAtMostTwoPercentWhereNothingIsAccepted) {
  for (const Machine& machine : machines()) {
    const Text never = {.first = 0.0, .slope = 0.0};
    const Outcome outcome = simulate(machine, never, 2000, 0.05, 11);
    EXPECT_LE(outcome.ms_per_token(), 1.02 * machine.plain_ms) << "plain " << machine.plain_ms;
  }
}

TEST(BlockPolicy, NeverLosesMoreThanTwoPercentAgainstPlainDecoding) {
  for (const Machine& machine : machines()) {
    for (const double first : {0.1, 0.3, 0.5, 0.7, 0.9, 1.0}) {
      const Outcome outcome = simulate(machine, {.first = first, .slope = 0.03}, 4000, 0.05, 23);
      EXPECT_LE(outcome.ms_per_token(), 1.02 * machine.plain_ms)
          << first << " plain " << machine.plain_ms;
    }
  }
}

TEST(BlockPolicy, StaysWithinThreePercentOfTheBestFixedLength) {
  for (const Machine& machine : machines()) {
    for (const double first : {0.0, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95, 1.0}) {
      const Text text = {.first = first, .slope = first < 1.0 ? 0.03 : 0.0};
      double ms = 0.0;
      for (uint64_t seed = 1; seed <= 5; ++seed) {
        ms += simulate(machine, text, 4000, 0.05, seed).ms_per_token() / 5.0;
      }
      EXPECT_LE(ms, 1.03 * best_fixed_ms_per_token(machine, text))
          << "acceptance " << first << " plain " << machine.plain_ms << " row " << machine.row_ms;
    }
  }
}

TEST(BlockPolicy, ReturnsToDraftingWhenTheTextBecomesPredictable) {
  const Machine machine;
  std::mt19937_64 random(5);
  StepCosts costs;
  BlockPolicy policy(costs, kDrafts);
  int late_drafts = 0;
  for (int step = 0; step < 3000; ++step) {
    const Text text = {.first = step < 1000 ? 0.0 : 0.9, .slope = 0.0};
    const int drafts = policy.next_drafts();
    const int accepted = accepted_drafts(text, drafts, random);
    costs.observe_forward(drafts + 1, machine.forward_ms(drafts + 1));
    if (drafts > 0) {
      costs.observe_draft(machine.draft_ms);
    }
    policy.observe(drafts, accepted, std::min(accepted + 1, drafts));
    late_drafts += step >= 2500 ? drafts : 0;
  }
  EXPECT_GT(late_drafts, 500 * 5);
}

TEST(StepCosts, InterpolatesBetweenWhatWasSeen) {
  StepCosts costs;
  EXPECT_EQ(costs.forward_ms(3), 0.0);
  costs.observe_forward(1, 10.0);
  EXPECT_EQ(costs.forward_ms(8), 10.0);
  costs.observe_forward(5, 18.0);
  EXPECT_DOUBLE_EQ(costs.forward_ms(3), 14.0);
  EXPECT_DOUBLE_EQ(costs.forward_ms(8), 18.0);
  for (int i = 0; i < 3; ++i) {
    costs.observe_forward(5, 20.0);
  }
  costs.observe_forward(5, 500.0);  // an outlier does not move the median
  EXPECT_DOUBLE_EQ(costs.forward_ms(5), 20.0);
}

}  // namespace
}  // namespace octet
