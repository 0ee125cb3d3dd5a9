// Drafts in company: where rows cost nothing everybody drafts, where they cost as much as a step of
// their own nobody does, and the likelier drafts go first.

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "octet/speculation/company_policy.h"

namespace octet {
namespace {

/// A step as planned, of which the first `right` drafts of each sequence are right.
template <typename Cost>
CompanyStep step_of(const std::vector<int>& drafts, Cost cost, int right = 7) {
  CompanyStep step;
  step.sequences = step.rows = step.tokens = std::ssize(drafts);
  for (const int count : drafts) {
    step.rows += count;
    if (count > 0) {
      const int accepted = std::min(right, count);
      step.tokens += accepted;
      step.fates.push_back({accepted, std::min(accepted + 1, count)});
    }
  }
  step.drafting = std::ssize(step.fates);
  step.forward_ms = cost(step.rows);
  step.draft_ms = step.drafting > 0 ? 0.5 : 0.0;
  return step;
}

/// Steps until the policy knows what they cost; the most usual plan of the next ones.
template <typename Cost>
std::vector<int> settle(CompanyPolicy& policy, std::span<const CompanyMember> members, Cost cost) {
  for (int i = 0; i < 40; ++i) {
    policy.observe(step_of(policy.plan(members, 0), cost));
  }
  std::map<std::vector<int>, int> plans;
  for (int i = 0; i < 20; ++i) {
    const std::vector<int> drafts = policy.plan(members, 0);
    ++plans[drafts];
    policy.observe(step_of(drafts, cost));
  }
  return std::max_element(
             plans.begin(),
             plans.end(),
             [](const auto& a, const auto& b) { return a.second < b.second; }
  )->first;
}

TEST(CompanyPolicy, DraftsFallToNothingWhenRowsAreDear) {
  for (const size_t count : {2U, 4U, 8U, 16U}) {
    CompanyPolicy policy;
    const std::vector<CompanyMember> members(count, CompanyMember{nullptr, 7});
    EXPECT_EQ(
        settle(policy, members, [](int64_t rows) { return static_cast<double>(rows); }),
        std::vector<int>(count, 0)
    );
  }
}

TEST(CompanyPolicy, EverybodyDraftsWhileRowsAreFree) {
  CompanyPolicy policy;
  const std::vector<CompanyMember> members(3, CompanyMember{nullptr, 7});
  EXPECT_EQ(
      settle(
          policy, members, [](int64_t rows) { return 10.0 + 0.001 * static_cast<double>(rows); }
      ),
      std::vector<int>(3, 7)
  );
}

TEST(CompanyPolicy, GrowingCompanyDraftsLess) {
  // A machine whose arithmetic is the limit beyond twelve rows.
  const auto cost = [](int64_t rows) { return rows <= 12 ? 12.0 : static_cast<double>(rows); };
  int64_t before = 7;
  for (const size_t count : {2U, 4U, 8U, 16U}) {
    CompanyPolicy policy;
    const std::vector<CompanyMember> members(count, CompanyMember{nullptr, 7});
    const std::vector<int> drafts = settle(policy, members, cost);
    const int64_t most = *std::max_element(drafts.begin(), drafts.end());
    EXPECT_LE(most, before);
    before = most;
  }
  EXPECT_EQ(before, 0);
}

TEST(CompanyPolicy, TheSurerSequenceDraftsMore) {
  const StepCosts costs;
  BlockPolicy sure(costs, 7);
  BlockPolicy unsure(costs, 7);
  for (int i = 0; i < 40; ++i) {
    sure.observe(7, 7, 7);
    unsure.observe(7, 0, 1);
  }
  CompanyPolicy policy;
  const std::vector<CompanyMember> members = {{&unsure, 7}, {&sure, 7}};
  const std::vector<int> drafts =
      settle(policy, members, [](int64_t rows) { return 4.0 + 0.5 * static_cast<double>(rows); });
  EXPECT_LE(drafts[0], 1);
  EXPECT_EQ(drafts[1], 7);
}

// Whatever is right or wrong with its estimates: what it loses comes out of a purse.
TEST(CompanyPolicy, DraftsThatNeverComeTrueCostLittle) {
  CompanyPolicy policy;
  const std::vector<CompanyMember> members(8, CompanyMember{nullptr, 7});
  const auto cost = [](int64_t rows) { return 10.0 + 0.3 * static_cast<double>(rows); };
  double ms = 0.0;
  for (int i = 0; i < 1000; ++i) {
    const CompanyStep step = step_of(policy.plan(members, 0), cost, 0);
    ms += step.forward_ms + step.draft_ms;
    policy.observe(step);
  }
  EXPECT_LE(ms, 1.02 * 1000 * cost(8));
}

// Prompts in every step, as with many short replies: their rows make no draft cheaper, and what is
// lost is charged.
TEST(CompanyPolicy, PromptsInTheStepMakeNoDraftCheap) {
  CompanyPolicy policy;
  const std::vector<CompanyMember> members(16, CompanyMember{nullptr, 7});
  const auto cost = [](int64_t rows) { return 0.4 + 0.085 * static_cast<double>(rows); };
  const auto step = [&](int64_t prompt_rows) {
    CompanyStep taken = step_of(policy.plan(members, prompt_rows), cost, 1);
    taken.prompt_rows = prompt_rows;
    taken.forward_ms = cost(taken.rows + prompt_rows);
    taken.draft_ms = 0.1 * static_cast<double>(taken.drafting);
    policy.observe(taken);
    return taken;
  };
  for (int i = 0; i < 200; ++i) {
    step(0);
  }
  const double token_ms = cost(16) / 16.0;
  double lost_ms = 0.0;
  double ms = 0.0;
  for (int i = 0; i < 2000; ++i) {
    const CompanyStep taken = step(30);
    ms += taken.forward_ms + taken.draft_ms;
    lost_ms += cost(taken.rows) - cost(16) + taken.draft_ms -
               token_ms * static_cast<double>(taken.tokens - taken.sequences);
  }
  EXPECT_LE(lost_ms, 0.02 * ms);
}

// Text changes: what was wrong for long is tried again, and found right.
TEST(CompanyPolicy, DraftsComeBackWhenTheyComeTrue) {
  CompanyPolicy policy;
  const std::vector<CompanyMember> members(4, CompanyMember{nullptr, 7});
  const auto cost = [](int64_t rows) { return 10.0 + 0.1 * static_cast<double>(rows); };
  const auto drafted = [&](int steps, int right) {
    int64_t count = 0;
    for (int i = 0; i < steps; ++i) {
      const CompanyStep step = step_of(policy.plan(members, 0), cost, right);
      count += step.drafting;
      policy.observe(step);
    }
    return count;
  };
  drafted(3000, 0);
  EXPECT_LT(drafted(1000, 0), 100);
  drafted(5000, 7);
  EXPECT_GT(drafted(100, 7), 300);
}

TEST(CompanyPolicy, WhoMayNotDraftIsNotProbed) {
  CompanyPolicy policy;
  const std::vector<CompanyMember> members = {{nullptr, 0}, {nullptr, 7}};
  const auto cost = [](int64_t rows) { return static_cast<double>(rows); };
  int64_t probes = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::vector<int> drafts = policy.plan(members, 0);
    EXPECT_EQ(drafts[0], 0);
    probes += drafts[1] > 0 ? 1 : 0;
    policy.observe(step_of(drafts, cost, 0));
  }
  EXPECT_GE(probes, 6) << "every probe teaches something";
}

const std::vector<CompanyMember> kThree(3, CompanyMember{nullptr, 7});

double nearly_free(int64_t rows) {
  return 10.0 + 0.001 * static_cast<double>(rows);
}

/// All three draft what they may, then something holds up a step.
void hold_up(CompanyPolicy& policy) {
  ASSERT_EQ(settle(policy, kThree, nearly_free), std::vector<int>(3, 7));
  CompanyStep held_up = step_of({7, 7, 7}, nearly_free);
  held_up.forward_ms = 5000.0;
  policy.observe(held_up);
}

// One reply of a fixed length must not keep the purse of the others empty.
TEST(CompanyPolicy, AReplyOfAFixedLengthStopsNoRefill) {
  CompanyPolicy policy;
  hold_up(policy);
  ASSERT_EQ(policy.plan(kThree, 0), std::vector<int>(3, 0));
  for (int i = 0; i < 1000; ++i) {
    CompanyStep step = step_of({0, 0, 0}, nearly_free);
    step.planned = false;
    policy.observe(step);
  }
  EXPECT_EQ(settle(policy, kThree, nearly_free), std::vector<int>(3, 7));
}

TEST(CompanyPolicy, AStepThatSomethingHeldUpIsForgotten) {
  CompanyPolicy policy;
  hold_up(policy);
  for (int i = 0; i < 1000; ++i) {
    policy.observe(step_of(policy.plan(kThree, 0), nearly_free));
  }
  EXPECT_EQ(settle(policy, kThree, nearly_free), std::vector<int>(3, 7));
}

TEST(CompanyPolicy, ProbingIsRare) {
  CompanyPolicy policy;
  const std::vector<CompanyMember> members(8, CompanyMember{nullptr, 7});
  int64_t probes = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::vector<int> drafts = policy.plan(members, 0);
    const auto drafted = std::accumulate(drafts.begin(), drafts.end(), int64_t{0});
    probes += drafted > 0 ? 1 : 0;
    policy.observe(step_of(
        drafts, [](int64_t rows) { return static_cast<double>(rows); }, 0
    ));
  }
  EXPECT_GE(probes, 3);
  EXPECT_LE(probes, 16);
}

}  // namespace
}  // namespace octet
