// The block policy against a simulated machine: costs and acceptance are given, time is added up,
// nothing is timed.
#include <algorithm>
#include <numeric>
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
  double cold = 1.0;  // how much longer the first pass of a kind takes

  double forward_ms(int rows) const { return plain_ms + row_ms * (rows - 1); }
};

/// Acceptance of row k + 1 given the rows before: constant `first`, falling by `slope` a row.
struct Text {
  double first = 0.8;
  double slope = 0.03;
  bool told = false;  // the drafter says how sure it is
  double spread = 0.3;

  double conditional(int k) const { return std::clamp(first - slope * k, 0.0, 1.0); }
};

struct Outcome {
  int64_t tokens = 0;
  int64_t drafted = 0;
  int64_t verified_in_vain = 0;  // steps whose drafts were all wrong
  double ms = 0.0;
  double ms_per_token() const { return ms / static_cast<double>(tokens); }
};

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

/// One step of a simulated sequence: the policy decides, the machine's times scatter by `noise`
/// (relative) where they are measured.
class Simulation {
 public:
  Simulation(const Machine& machine, double noise, uint64_t seed)
      : machine_(machine), scatter_(1.0, noise), random_(seed), policy_(costs_, kDrafts) {}

  /// `room`: no block is longer.
  void step(const Text& text, int room = kDrafts) {
    std::vector<float> confidence;
    std::vector<double> chances;
    for (int k = 0; k < kDrafts; ++k) {
      chances.push_back(text.conditional(k));
      if (text.told) {  // each draft has a chance of its own around the place's, and the drafter
                        // knows it
        std::uniform_real_distribution<double> spread(-text.spread, text.spread);
        chances.back() = std::clamp(chances.back() + spread(random_), 0.0, 1.0);
        confidence.push_back(static_cast<float>(chances.back()));
      }
    }
    const int wanted = policy_.next_drafts();
    ASSERT_GE(wanted, 0);
    ASSERT_LE(wanted, kDrafts);
    const int asked = std::min(wanted, room);
    // The text is its positions; a wrong draft is none of them.
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    const auto next = static_cast<TokenId>(outcome.tokens);
    std::vector<TokenId> drafts;
    for (int k = 0; k < asked; ++k) {
      const bool right = uniform(random_) < chances[static_cast<size_t>(k)];
      drafts.push_back(right ? next + k : -1);
    }
    const int kept = asked > 0 ? policy_.keep(drafts, confidence) : 0;
    ASSERT_LE(kept, asked);
    int accepted = 0;
    while (accepted < kept && drafts[static_cast<size_t>(accepted)] == next + accepted) {
      ++accepted;
    }
    outcome.verified_in_vain += kept > 0 && accepted == 0 ? 1 : 0;
    outcome.tokens += accepted + 1;
    outcome.ms += machine_.forward_ms(kept + 1) + (asked > 0 ? machine_.draft_ms : 0.0);
    outcome.drafted += kept;
    const bool cold = !costs_.knows_forward(kept + 1);
    costs_.observe_forward(
        kept + 1, machine_.forward_ms(kept + 1) * measured() * (cold ? machine_.cold : 1.0)
    );
    if (asked > 0 && drafted_before_) {
      costs_.observe_draft(machine_.draft_ms * measured());
    } else if (asked > 0) {
      costs_.observe_look(machine_.draft_ms * measured());
    }
    drafted_before_ = asked > 0;
    std::vector<TokenId> published(static_cast<size_t>(accepted) + 1);
    std::iota(published.begin(), published.end(), next);
    policy_.published(published);
    if (kept > 0) {
      policy_.observe(kept, accepted, std::min(accepted + 1, kept));
    }
  }

  void move_to(const Machine& machine) { machine_ = machine; }

  Outcome outcome;

 private:
  double measured() { return std::max(0.2, scatter_(random_)); }

  Machine machine_;
  std::normal_distribution<double> scatter_;
  std::mt19937_64 random_;
  StepCosts costs_;
  BlockPolicy policy_;
  bool drafted_before_ = false;
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
    for (const double first : {0.0, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95, 1.0}) {
      const Text text = {.first = first, .slope = first < 1.0 ? 0.03 : 0.0};
      EXPECT_LE(mean_ms_per_token(machine, text), 1.03 * best_fixed_ms_per_token(machine, text))
          << "acceptance " << first << " plain " << machine.plain_ms << " row " << machine.row_ms;
    }
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
    best = std::min(best, step_ms(machine, k + 1) / tokens);
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

// What a text that accepts nothing costs beyond the drafts of the looks: the few blocks that showed
// it.
TEST(BlockPolicy, LooksVerifyNothing) {
  for (const Machine& machine : machines()) {
    Simulation simulation(machine, 0.05, 17);
    for (int step = 0; step < 5000; ++step) {
      simulation.step({.first = 0.0, .slope = 0.0});
    }
    EXPECT_LE(simulation.outcome.verified_in_vain, 5) << "plain " << machine.plain_ms;
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

// What one text taught spares the next one the blocks that show it.
TEST(BlockPolicy, AnotherTextBeginsWithWhatWasLearnt) {
  StepCosts costs;
  for (int i = 0; i < 20; ++i) {
    costs.observe_forward(1, 1.0);
    costs.observe_forward(kDrafts + 1, 3.1);
    costs.observe_draft(0.8);
  }
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
