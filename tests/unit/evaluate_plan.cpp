// The planner's arithmetic: acceptance to tokens, costs to speed, by context, company and workload.
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/evaluate/plan.h"

namespace octet {
namespace {

/// 10 ms for the weights and 2 ms a row; drafts 6 ms, injection 0.5 ms; each position costs a
/// microsecond a row.
CycleCosts linear_costs() {
  CycleCosts costs;
  for (const int64_t context : {0, 4000}) {
    ContextCosts here{context, {}, 6.0, 0.5};
    for (int rows = 1; rows <= 8; ++rows) {
      here.forward_ms.push_back(10.0 + rows * (2.0 + static_cast<double>(context) * 1e-3));
    }
    costs.contexts.push_back(here);
  }
  costs.prefill = {{512, 1024.0}, {4096, 9000.0}};
  return costs;
}

TEST(Plan, TokensAStepAddTheJointProbabilities) {
  const AcceptanceProfile profile = {0.5, 0.5, 1.0};
  EXPECT_DOUBLE_EQ(tokens_per_step(profile, 0), 1.0);
  EXPECT_DOUBLE_EQ(tokens_per_step(profile, 1), 1.5);
  EXPECT_DOUBLE_EQ(tokens_per_step(profile, 2), 1.75);
  EXPECT_DOUBLE_EQ(tokens_per_step(profile, 3), 2.0);
  EXPECT_DOUBLE_EQ(tokens_per_step(profile, 7), 2.0);
}

TEST(Plan, ProfilesOfALengthGiveIt) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    const int drafts = 1 + static_cast<int>(random() % 15);
    const double length = 1.0 + drafts * std::uniform_real_distribution()(random);
    const AcceptanceProfile profile = profile_of_length(length, drafts);
    ASSERT_EQ(profile.size(), static_cast<size_t>(drafts));
    EXPECT_NEAR(tokens_per_step(profile, drafts), length, 1e-9) << drafts;
  }
  EXPECT_NEAR(profile_of_length(1.0, 7).front(), 0.0, 1e-9);
  EXPECT_DOUBLE_EQ(profile_of_length(8.0, 7).front(), 1.0);
  for (const double impossible : {0.99, 8.01, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(profile_of_length(impossible, 7), Error) << impossible;
  }
}

TEST(Plan, MeasuredCostsAreTakenAsTheyAre) {
  const CycleCosts costs = linear_costs();
  const AcceptanceProfile profile(7, 0.8);
  for (const ContextCosts& here : costs.contexts) {
    const auto lengths = plan_drafts(costs, profile, {here.context, 1});
    ASSERT_EQ(lengths.size(), 8U);
    EXPECT_DOUBLE_EQ(lengths[0].step_ms, here.forward_ms[0]);
    EXPECT_DOUBLE_EQ(lengths[0].speedup, 1.0);
    EXPECT_DOUBLE_EQ(lengths[0].needs, 1.0);
    for (size_t drafts = 1; drafts < 8; ++drafts) {
      const double tokens = tokens_per_step(profile, static_cast<int>(drafts));
      const double step_ms = here.forward_ms[drafts] + here.draft_ms + tokens * here.inject_ms;
      EXPECT_DOUBLE_EQ(lengths[drafts].tokens, tokens);
      EXPECT_DOUBLE_EQ(lengths[drafts].step_ms, step_ms);
      EXPECT_DOUBLE_EQ(lengths[drafts].speedup, tokens * here.forward_ms[0] / step_ms);
      EXPECT_DOUBLE_EQ(lengths[drafts].needs, step_ms / here.forward_ms[0]);
    }
  }
}

/// On costs that are a line in rows and in positions, nothing is guessed.
TEST(Plan, BetweenAndBeyondItFollowsTheLines) {
  const CycleCosts costs = linear_costs();
  const AcceptanceProfile profile(7, 0.5);
  for (const int64_t context : {0, 1000, 4000, 20000}) {
    for (const int conversations : {1, 2, 5, 16}) {
      const auto lengths = plan_drafts(costs, profile, {context, conversations});
      for (int drafts = 0; drafts <= 7; ++drafts) {
        const double rows = conversations * (drafts + 1.0);
        double step_ms = 10.0 + rows * (2.0 + static_cast<double>(context) * 1e-3);
        if (drafts > 0) {
          step_ms += 6.0 * (10.0 + 16.0 * conversations) / 26.0 +
                     0.5 * conversations * lengths[static_cast<size_t>(drafts)].tokens;
        }
        EXPECT_NEAR(lengths[static_cast<size_t>(drafts)].step_ms, step_ms, 1e-9)
            << context << " " << conversations << " " << drafts;
      }
    }
  }
}

TEST(Plan, ADrafterMakesNoMoreThanItsBlock) {
  CycleCosts costs = linear_costs();
  costs.block = 4;
  EXPECT_EQ(costs.most_drafts(), 3);
  EXPECT_EQ(plan_drafts(costs, AcceptanceProfile(3, 1.0), {0, 1}).size(), 4U);
  costs.block = 16;
  EXPECT_EQ(costs.most_drafts(), 7) << "no more than was measured";
}

/// Costs that seem to fall with the context, by noise, fall no further.
TEST(Plan, NoiseIsNotExtrapolated) {
  CycleCosts costs = linear_costs();
  for (double& ms : costs.contexts[1].forward_ms) {
    ms = costs.contexts[0].forward_ms[0] - 0.1;
  }
  costs.contexts[1].draft_ms = 5.9;
  const auto far = plan_drafts(costs, AcceptanceProfile(7, 0.5), {1'000'000, 1});
  EXPECT_DOUBLE_EQ(far[0].step_ms, costs.contexts[1].forward_ms[0]);
  EXPECT_GT(far[7].step_ms, 5.9);
}

TEST(Plan, TheBestLengthFollowsTheAcceptance) {
  const CycleCosts costs = linear_costs();
  const auto best = [&](double probability, int conversations) {
    const auto lengths = plan_drafts(costs, AcceptanceProfile(7, probability), {0, conversations});
    return best_of(lengths).drafts;
  };
  EXPECT_EQ(best(0.0, 1), 0);
  EXPECT_EQ(best(1.0, 1), 7);
  EXPECT_EQ(best(0.3, 1), 0);
  EXPECT_GT(best(0.8, 1), 0);
  EXPECT_LT(best(0.8, 1), 7);
  EXPECT_LE(best(0.8, 16), best(0.8, 1));
  EXPECT_EQ(best(0.5, 64), 0) << "company makes rows dear";
}

TEST(Plan, WorkloadsAddPromptAndReply) {
  const CycleCosts costs = linear_costs();
  const AcceptanceProfile profile(7, 1.0);
  const PlannedWorkload plan = plan_workload(costs, profile, {0, 512, 100});
  EXPECT_DOUBLE_EQ(plan.first_token_ms, 1024.0);
  const auto middle = plan_drafts(costs, profile, {562, 1});
  EXPECT_DOUBLE_EQ(plan.plain_ms, 1024.0 + 99.0 * middle[0].step_ms);
  EXPECT_EQ(plan.drafts, 7);
  EXPECT_DOUBLE_EQ(plan.drafted_ms, 1024.0 + 99.0 / 8.0 * middle[7].step_ms);
  // 2 ms a row at the nearest measured length, and 4 ms for what 4,000 positions add to a row.
  EXPECT_NEAR(plan_workload(costs, profile, {4000, 100, 1}).first_token_ms, 100.0 * 6.0, 1e-9);
  EXPECT_DOUBLE_EQ(plan_workload(costs, profile, {0, 1, 1}).first_token_ms, 12.0) << "a pass";
  // Rows of 12,096 attend in the mean to 4,000 more than those of the measured 4,096, for 4 ms.
  const double long_prompt_ms = 12'096.0 * (9000.0 / 4096.0 + 4.0);
  EXPECT_NEAR(plan_workload(costs, profile, {0, 12'096, 1}).first_token_ms, long_prompt_ms, 1e-6);
  EXPECT_NEAR(
      plan_workload(costs, profile, {2000, 12'096, 1}).first_token_ms,
      long_prompt_ms + 12'096.0 * 2.0,
      1e-6
  );
  const PlannedWorkload company = plan_workload(costs, profile, {0, 512, 100, 4});
  EXPECT_DOUBLE_EQ(company.first_token_ms, 4 * 1024.0) << "of the last of them";
  const auto together = plan_drafts(costs, profile, {562, 4});
  EXPECT_DOUBLE_EQ(company.plain_ms, 4 * 1024.0 + 99.0 * together[0].step_ms);
  CycleCosts none = costs;
  none.prefill.clear();
  EXPECT_THROW(plan_workload(none, profile, {0, 512, 100}), Error);
}

}  // namespace
}  // namespace octet
