#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "octet/speculation/draft_balance.h"

namespace octet {
namespace {

constexpr int kDrafts = 7;

/// Passes of 10 ms and 1 ms more a row, drafts of 2 ms.
StepCosts costs() {
  StepCosts costs;
  for (int rows = 1; rows <= kDrafts + 1; ++rows) {
    costs.observe_forward(rows, 9.0 + rows);
  }
  costs.observe_draft(2.0);
  return costs;
}

/// What every length would have given where the first `right` drafts are right.
TokensByLength right_drafts(int right) {
  TokensByLength tokens{};
  for (int length = 0; length <= kMaxDrafts; ++length) {
    tokens[static_cast<size_t>(length)] = 1.0 + std::min(right, length);
  }
  return tokens;
}

TEST(DraftBalance, IsInfiniteBeforeAnythingIsKnown) {
  EXPECT_EQ(
      DraftBalance().ms_per_token(costs(), kDrafts, {}), std::numeric_limits<double>::infinity()
  );
}

// Full blocks of which two drafts are right: two drafts would have been the length.
TEST(DraftBalance, SeesTheLengthThatWouldHavePaid) {
  DraftBalance balance;
  for (int i = 0; i < 30; ++i) {
    balance.add(3.0, kDrafts + 1, right_drafts(2));
  }
  EXPECT_NEAR(balance.ms_per_token(costs(), kDrafts, {}), (2.0 + 12.0) / 3.0, 1e-9);
  EXPECT_NEAR(balance.ms_per_token(costs(), 1, {}), (2.0 + 17.0) / 3.0, 1e-9)
      << "what was verified counts, and of other lengths those that may be asked for";
}

// Lengths that were chosen block by block can beat every fixed one.
TEST(DraftBalance, SeesWhatWasVerified) {
  DraftBalance balance;
  balance.add(8.0, 8, right_drafts(7));
  balance.add(1.0, 1, right_drafts(0));
  const double verified = (19.0 + 12.0) / 9.0;
  EXPECT_NEAR(balance.ms_per_token(costs(), kDrafts, {}), verified, 0.02 * verified);
  EXPECT_LT(verified, 2.0 * 19.0 / 9.0);
}

TEST(DraftBalance, TrustIsTimeAtAFasterPace) {
  EXPECT_NEAR(
      DraftBalance().ms_per_token(costs(), kDrafts, {.trust_steps = 5.0}), 10.0 / 1.4, 1e-9
  );
  DraftBalance balance;
  double before = 0.0;
  for (int i = 0; i < 10; ++i) {  // it wears off
    balance.add(1.0, 8, right_drafts(0));
    const double now = balance.ms_per_token(costs(), kDrafts, {.trust_steps = 5.0});
    EXPECT_GT(now, before);
    before = now;
  }
  EXPECT_GT(before, 10.0) << "slower than plain decoding by now";
}

// Against the textbook's formula, on weights of 0.99 to the block's age.
TEST(DraftBalance, DoubtsByTheStandardErrorOfItsTokens) {
  const std::vector<int> right = {0, 7, 3, 1, 0, 7, 7, 2, 5, 0, 0, 4};
  DraftBalance balance;
  double blocks = 0.0;
  double sum = 0.0;
  for (const int drafts : right) {
    balance.add(drafts + 1.0, kDrafts + 1, right_drafts(drafts));
    blocks = 0.99 * blocks + 1.0;
    sum = 0.99 * sum + drafts + 1.0;
  }
  double squared_deviations = 0.0;
  double weight = 1.0;
  for (auto drafts = right.rbegin(); drafts != right.rend(); ++drafts, weight *= 0.99) {
    squared_deviations += weight * std::pow(*drafts + 1.0 - sum / blocks, 2.0);
  }
  const double tokens = sum + 1.5 * std::sqrt(squared_deviations);  // sum's error: sqrt(n) sigma
  EXPECT_NEAR(
      balance.ms_per_token(costs(), kDrafts, {.standard_errors = 1.5}), blocks * 19.0 / tokens, 1e-9
  );

  DraftBalance steady;
  for (int i = 0; i < 10; ++i) {
    steady.add(1.0, kDrafts + 1, right_drafts(0));
  }
  EXPECT_NEAR(
      steady.ms_per_token(costs(), kDrafts, {.standard_errors = 3.0}),
      steady.ms_per_token(costs(), kDrafts, {}),
      1e-6
  ) << "what never varies is not doubted";
}

TEST(DraftBalance, ForgetsAndIsPricedAtTodaysCosts) {
  DraftBalance balance;
  for (int i = 0; i < 2000; ++i) {
    balance.add(1.0, 8, right_drafts(0));
  }
  EXPECT_LT(balance.blocks(), 101.0);
  StepCosts today = costs();
  const double before = balance.ms_per_token(today, kDrafts, {});
  for (int i = 0; i < 20; ++i) {
    today.observe_draft(30.0);
  }
  EXPECT_NEAR(balance.ms_per_token(today, kDrafts, {}), before + 28.0, 1e-6);
  for (int i = 0; i < 1000; ++i) {
    balance.add(8.0, 8, right_drafts(7));
  }
  EXPECT_NEAR(balance.ms_per_token(today, kDrafts, {}), (30.0 + 17.0) / 8.0, 0.01);
}

}  // namespace
}  // namespace octet
