// The block policy against a simulated machine: costs and acceptance are given, time is added up,
// nothing is timed.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "octet/speculation/block_policy.h"
#include "support/simulated_decoding.h"

namespace octet {
namespace {

using test::Machine;
using test::Outcome;
constexpr int kDrafts = test::kSimulatedDrafts;

/// Acceptance of row k + 1 given the rows before: constant `first`, falling by `slope` a row.
struct Text {
  double first = 0.8;
  double slope = 0.03;
  bool told = false;  // the drafter says how sure it is
  double spread = 0.3;

  double conditional(int k) const { return std::clamp(first - slope * k, 0.0, 1.0); }
};

double fixed_ms_per_token(const Machine& machine, const Text& text, int drafts) {
  double tokens = 1.0;
  double joint = 1.0;
  for (int k = 0; k < drafts; ++k) {
    joint *= text.conditional(k);
    tokens += joint;
  }
  return machine.block_ms(drafts) / tokens;
}

double best_fixed_ms_per_token(const Machine& machine, const Text& text) {
  double best = fixed_ms_per_token(machine, text, 0);
  for (int m = 1; m <= kDrafts; ++m) {
    best = std::min(best, fixed_ms_per_token(machine, text, m));
  }
  return best;
}

/// A simulated sequence whose drafts are right by chance.
class Simulation : public test::SimulatedDecoding {
 public:
  using SimulatedDecoding::SimulatedDecoding;

  void step(const Text& text, int room = kDrafts) {
    std::vector<float> confidence;
    int right = 0;
    bool wrong = false;
    for (int k = 0; k < kDrafts; ++k) {
      double chance = text.conditional(k);
      if (text.told) {  // each draft has a chance of its own around the place's, and the drafter
                        // knows it
        const double shift = text.spread * (2.0 * random_unit() - 1.0);
        chance = std::clamp(chance + shift, 0.0, 1.0);
        confidence.push_back(static_cast<float>(chance));
      }
      wrong = wrong || random_unit() >= chance;
      right += wrong ? 0 : 1;
    }
    SimulatedDecoding::step(right, confidence, room);
  }
};

Outcome simulate(
    const Machine& machine, const Text& text, int64_t tokens, double noise, uint64_t seed
) {
  Simulation simulation(machine, noise, seed);
  while (simulation.outcome.tokens < tokens && !testing::Test::HasFatalFailure()) {
    simulation.step(text);
  }
  return simulation.outcome;
}

double mean_ms_per_token(const Machine& machine, const Text& text) {
  constexpr uint64_t kSeeds = 40;
  double ms = 0.0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    ms += simulate(machine, text, 4000, 0.05, seed).ms_per_token() / kSeeds;
  }
  return ms;
}

const std::vector<Machine>& machines() {
  static const std::vector<Machine> all = {
      {.plain_ms = 55, .row_ms = 4, .draft_ms = 16},    // the goal of the project
      {.plain_ms = 55, .row_ms = 12, .draft_ms = 20},   // half of it
      {.plain_ms = 88, .row_ms = 55, .draft_ms = 180},  // drafting can never pay
      {.plain_ms = 1.0, .row_ms = 0.32, .draft_ms = 1.4, .pause_ms = 0.7}  // the shipped pair
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

TEST(BlockPolicy, LosesAtMostTwoPercentToPlainDecodingOnAverage) {
  for (const Machine& machine : machines()) {
    for (const double first : {0.1, 0.3, 0.5, 0.7, 0.9, 1.0}) {
      EXPECT_LE(
          mean_ms_per_token(machine, {.first = first, .slope = 0.03}), 1.02 * machine.plain_ms
      ) << first
        << " plain " << machine.plain_ms;
    }
  }
}

TEST(BlockPolicy, StaysWithinThreePercentOfTheBestFixedLength) {
  for (const Machine& machine : machines()) {
    for (const double first : {0.0, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.97, 1.0}) {
      const Text text = {.first = first, .slope = first < 1.0 ? 0.03 : 0.0};
      EXPECT_LE(mean_ms_per_token(machine, text), 1.03 * best_fixed_ms_per_token(machine, text))
          << "acceptance " << first << " plain " << machine.plain_ms << " row " << machine.row_ms;
    }
  }
}

/// Whether the draft of every position is right: one luck for all ways to decode.
std::vector<char> lucky_positions(double acceptance, int64_t tokens, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::bernoulli_distribution right(acceptance);
  std::vector<char> lucky(static_cast<size_t>(tokens));
  std::ranges::generate(lucky, [&] { return right(random) ? 1 : 0; });
  return lucky;
}

int right_at(std::span<const char> lucky, size_t at) {
  int right = 0;
  while (right < kDrafts && at + right < lucky.size() && lucky[at + right] != 0) {
    ++right;
  }
  return right;
}

double fixed_ms(const Machine& machine, std::span<const char> lucky, int drafts) {
  double ms = 0.0;
  for (size_t at = 0; at < lucky.size();) {
    ms += machine.block_ms(drafts);
    at += static_cast<size_t>(std::min(drafts, right_at(lucky, at))) + 1;
  }
  return ms;
}

/// Time of single replies, costs known beforehand, over that of the best fixed length in the very
/// same luck: the mean of many.
double over_best_length(const Machine& machine, double acceptance, int64_t tokens, uint64_t texts) {
  double adaptive = 0.0;
  std::array<double, kDrafts + 1> fixed{};
  for (uint64_t text = 1; text <= texts; ++text) {
    const std::vector<char> lucky = lucky_positions(acceptance, tokens, text);
    test::SimulatedDecoding decoding(machine, 0.05, text);
    decoding.learn_costs();
    while (decoding.outcome.tokens < tokens) {
      decoding.step(right_at(lucky, static_cast<size_t>(decoding.outcome.tokens)), {});
    }
    adaptive += decoding.outcome.ms;
    for (int drafts = 0; drafts <= kDrafts; ++drafts) {
      fixed[static_cast<size_t>(drafts)] += fixed_ms(machine, lucky, drafts);
    }
  }
  return adaptive / std::ranges::min(fixed);
}

// Replies of 300 tokens, for any acceptance.
TEST(BlockPolicy, ShortTextsAreWithinThreePercentToo) {
  const std::vector<Machine> users = {
      {.plain_ms = 85, .row_ms = 0.8, .draft_ms = 21},  // memory is what steps wait for
      {.plain_ms = 54, .row_ms = 3.8, .draft_ms = 16},  // arithmetic, with eight rows
      {.plain_ms = 55, .row_ms = 12, .draft_ms = 20},   // arithmetic, with two
  };
  for (const Machine& machine : users) {
    for (const double acceptance : {0.0, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0}) {
      EXPECT_LE(over_best_length(machine, acceptance, 300, 100), acceptance > 0.0 ? 1.03 : 1.02)
          << acceptance << " plain " << machine.plain_ms;
    }
  }
}

// Where a block costs nearly five plain steps and its tokens scatter from one to eight, it takes
// long to see which of the two pays: 3,000 tokens, close around break-even.
TEST(BlockPolicy, DearBlocksNearBreakEvenAreWithinThreePercent) {
  for (const double acceptance : {0.0, 0.5, 0.75, 0.8, 0.83, 0.85, 0.87, 0.9, 0.92, 0.95}) {
    EXPECT_LE(over_best_length(machines().back(), acceptance, 3000, 100), 1.03) << acceptance;
  }
}

/// What a fixed length sees of drafts whose chances spread.
double best_fixed_with_spread(const Machine& machine, const Text& text) {
  constexpr int kPoints = 1001;
  double best = machine.plain_ms;
  double joint = 1.0;
  double tokens = 1.0;
  for (int k = 0; k < kDrafts; ++k) {
    double mean = 0.0;
    for (int i = 0; i < kPoints; ++i) {
      const double at = text.spread * (2.0 * i / (kPoints - 1) - 1.0);
      mean += std::clamp(text.conditional(k) + at, 0.0, 1.0) / kPoints;
    }
    joint *= mean;
    tokens += joint;
    best = std::min(best, machine.block_ms(k + 1) / tokens);
  }
  return best;
}

// The same bound where drafts tell how sure they are; and where rows cost something, verifying the
// sure ones alone beats every fixed length.
TEST(BlockPolicy, StaysWithinThreePercentWithConfidence) {
  for (const Machine& machine : machines()) {
    for (const double first : {0.0, 0.3, 0.5, 0.7, 0.95}) {
      const Text text = {.first = first, .slope = 0.03, .told = true};
      EXPECT_LE(mean_ms_per_token(machine, text), 1.03 * best_fixed_with_spread(machine, text))
          << "acceptance " << first << " plain " << machine.plain_ms << " row " << machine.row_ms;
    }
  }
}

TEST(BlockPolicy, ConfidenceBeatsEveryFixedLength) {
  const Machine machine = {.plain_ms = 55, .row_ms = 12, .draft_ms = 20};
  for (const double first : {0.6, 0.7, 0.8}) {
    const Text text = {.first = first, .slope = 0.03, .told = true, .spread = 0.5};
    EXPECT_LE(mean_ms_per_token(machine, text), 0.98 * best_fixed_with_spread(machine, text))
        << "acceptance " << first;
  }
}

TEST(BlockPolicy, ColdFirstPassesDecideNothing) {
  const Text text = {.first = 0.9, .slope = 0.0};
  const Machine warm = {.plain_ms = 1.0, .row_ms = 0.2, .draft_ms = 1.2};
  Machine cold = warm;
  cold.cold = 4.0;
  EXPECT_LE(mean_ms_per_token(cold, text), 1.03 * best_fixed_ms_per_token(warm, text));
}

// What a text that accepts nothing costs beyond the drafts of the looks: the few blocks that show
// it at the start.
TEST(BlockPolicy, LooksVerifyNothing) {
  for (const Machine& machine : machines()) {
    Simulation simulation(machine, 0.05, 17);
    for (int step = 0; step < 100; ++step) {
      simulation.step({.first = 0.0, .slope = 0.0});
    }
    const int64_t at_first = simulation.outcome.verified_in_vain;
    EXPECT_LE(at_first, 5) << "plain " << machine.plain_ms;
    for (int step = 0; step < 5000; ++step) {
      simulation.step({.first = 0.0, .slope = 0.0});
    }
    EXPECT_EQ(simulation.outcome.verified_in_vain, at_first) << "plain " << machine.plain_ms;
  }
}

// A text with predictable phrases, too short and too far apart for drafting to pay. Looks that meet
// one must not be taken for a change of the text.
TEST(BlockPolicy, PhrasesAreNoReasonToDraft) {
  const Machine pair = {.plain_ms = 0.073, .row_ms = 0.01, .draft_ms = 0.1};
  for (const int64_t phrase : {6, 12, 18}) {
    double ms = 0.0;
    constexpr uint64_t kSeeds = 40;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      Simulation simulation(pair, 0.05, seed);
      while (simulation.outcome.tokens < 4000) {
        const bool known = simulation.outcome.tokens % 67 < phrase;
        simulation.step({.first = known ? 1.0 : 0.2, .slope = 0.0});
      }
      ms += simulation.outcome.ms_per_token() / kSeeds;
    }
    EXPECT_LE(ms, 1.008 * pair.plain_ms) << phrase;
  }
}

// Replies of a few tokens: the limit cuts every block, so that what a full one costs stays unknown.
TEST(BlockPolicy, ShortRepliesCostNoMoreThanPlainOnes) {
  constexpr int kTokens = 7;  // the prompt's pass gives another
  for (const Machine& machine : machines()) {
    Simulation simulation(machine, 0.05, 23);
    for (int reply = 0; reply < 600; ++reply) {
      const int64_t end = simulation.outcome.tokens + kTokens;
      while (simulation.outcome.tokens < end) {
        simulation.step(
            {.first = 0.0, .slope = 0.0}, static_cast<int>(end - simulation.outcome.tokens - 1)
        );
      }
    }
    EXPECT_LE(simulation.outcome.ms_per_token(), 1.02 * machine.plain_ms)
        << "plain " << machine.plain_ms;
  }
}

// And where they are predictable, they gain what is to be had.
TEST(BlockPolicy, ShortRepliesAreDraftedWhereThatPays) {
  Simulation simulation({}, 0.05, 29);
  double best = 0.0;
  for (int reply = 0; reply < 600; ++reply) {
    simulation.step({.first = 0.95, .slope = 0.0}, 4);
  }
  for (int m = 0; m <= 4; ++m) {
    const double ms = fixed_ms_per_token({}, {.first = 0.95, .slope = 0.0}, m);
    best = m == 0 ? ms : std::min(best, ms);
  }
  EXPECT_LE(simulation.outcome.ms_per_token(), 1.03 * best);
}

TEST(BlockPolicy, ReturnsToDraftingWhenTheTextBecomesPredictable) {
  Simulation simulation({}, 0.05, 5);
  for (int step = 0; step < 1000; ++step) {
    simulation.step({.first = 0.0, .slope = 0.0});
  }
  for (int step = 0; step < 300; ++step) {
    simulation.step({.first = 0.9, .slope = 0.0});
  }
  const Outcome before = simulation.outcome;
  for (int step = 0; step < 500; ++step) {
    simulation.step({.first = 0.9, .slope = 0.0});
  }
  EXPECT_GT(simulation.outcome.drafted - before.drafted, 500 * 5);
}

// The machine becomes slower in the midst of a text: a plain step's cost that is out of date must
// not make drafting look bad for long.
TEST(BlockPolicy, SurvivesADriftOfTheMachine) {
  const Text text = {.first = 0.85, .slope = 0.0};
  const Machine fast;
  const Machine slow = {
      .plain_ms = 2 * fast.plain_ms, .row_ms = 2 * fast.row_ms, .draft_ms = 2 * fast.draft_ms};
  Simulation simulation(fast, 0.02, 3);
  for (int step = 0; step < 400; ++step) {
    simulation.step(text);
  }
  simulation.move_to(slow);
  const int64_t before = simulation.outcome.drafted;
  for (int step = 0; step < 400; ++step) {
    simulation.step(text);
  }
  EXPECT_GT(simulation.outcome.drafted - before, 400 * 5);
}

// Another program takes the CPUs for some steps, now and then. What plain steps cost meanwhile must
// not make drafting look good for long, not even where it nearly pays.
TEST(BlockPolicy, DisturbancesOfTheMachineDecideNothing) {
  const Machine quiet = {.plain_ms = 1.0, .row_ms = 0.3, .draft_ms = 0.8};
  const Machine busy = {.plain_ms = 20.0, .row_ms = 0.3, .draft_ms = 9.0};
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    const int64_t length = seed < 4 ? 12 : 60;
    Simulation simulation(quiet, 0.05, seed);
    double disturbed_ms = 0.0;
    int64_t disturbed_tokens = 0;
    for (int step = 0; step < 8000; ++step) {
      const Outcome before = simulation.outcome;
      const bool disturbed = step % 2000 >= 2000 - length;
      simulation.move_to(disturbed ? busy : quiet);
      simulation.step({.first = 0.55, .slope = 0.03});
      if (disturbed) {
        disturbed_ms += simulation.outcome.ms - before.ms;
        disturbed_tokens += simulation.outcome.tokens - before.tokens;
      }
    }
    const auto tokens = static_cast<double>(simulation.outcome.tokens - disturbed_tokens);
    EXPECT_LE(
        (simulation.outcome.ms - disturbed_ms) / tokens,
        (length < 32 ? 1.02 : 1.03) * quiet.plain_ms
    ) << "seed "
      << seed;
  }
}

StepCosts costs_of_a_small_pair() {
  StepCosts costs;
  for (int i = 0; i < 20; ++i) {
    costs.observe_forward(1, 1.0);
    costs.observe_forward(kDrafts + 1, 3.1);
    costs.observe_draft(0.8);
  }
  return costs;
}

// What one text taught spares the next one the blocks that show it.
TEST(BlockPolicy, AnotherTextBeginsWithWhatWasLearnt) {
  const StepCosts costs = costs_of_a_small_pair();
  BlockPolicy taught(costs, kDrafts);
  const std::vector<TokenId> drafts(kDrafts, 1);
  int blocks = 0;
  while (taught.next_drafts() > 0) {
    ASSERT_LT(++blocks, 50);
    taught.observe(taught.keep(drafts, {}), 0, 1);
  }
  EXPECT_GT(blocks, 0);
  BlockPolicy other = taught.for_another_text();
  EXPECT_EQ(other.conditional(0, 0.5), taught.conditional(0, 0.5));
  // Looks cost what they may, whatever texts they fall into.
  const auto steps_to_look = [&](BlockPolicy& policy) {
    int plain = 0;
    while (policy.next_drafts() == 0 && plain < 1000) {
      ++plain;
    }
    EXPECT_EQ(policy.keep(drafts, {}), 0) << "a look verifies nothing";
    return plain;
  };
  const int due = steps_to_look(taught);
  EXPECT_LT(due, 1000);
  EXPECT_EQ(steps_to_look(other), due);
}

// Features cost time to take in: all while drafting, a few before a look, none in between.
TEST(BlockPolicy, WantsFeaturesOnlyForDraftsToCome) {
  const StepCosts costs = costs_of_a_small_pair();
  BlockPolicy policy(costs, kDrafts);
  EXPECT_GT(policy.features_wanted(), 100000);
  const std::vector<TokenId> drafts(kDrafts, 1);
  while (policy.next_drafts() > 0) {
    policy.observe(policy.keep(drafts, {}), 0, 1);
  }
  for (int look = 0; look < 4; ++look) {  // the first ones are in a hurry
    while (policy.next_drafts() == 0) {
    }
    EXPECT_EQ(policy.keep(drafts, {}), 0);
    policy.published(std::vector<TokenId>{2});
  }
  std::vector<int64_t> wanted = {policy.features_wanted()};
  while (policy.next_drafts() == 0) {
    wanted.push_back(policy.features_wanted());
    ASSERT_LT(wanted.size(), 1000U);
  }
  ASSERT_GT(wanted.size(), 40U);
  EXPECT_EQ(wanted.front(), 0);
  EXPECT_TRUE(std::ranges::is_sorted(wanted));
  EXPECT_EQ(wanted.back(), 32);
  EXPECT_LE(std::abs(std::ranges::count(wanted, 32) - 32), 1);
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
