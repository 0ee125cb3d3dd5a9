// Drafts in company: where rows cost nothing everybody drafts, where they cost as much as a step of
// their own nobody does, and the likelier drafts go first.

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "octet/speculation/company_policy.h"

namespace octet {
namespace {

/// Steps of `count` sequences whose forward costs base + slope * rows, until the policy knows them.
template <typename Cost>
std::vector<int> settle(CompanyPolicy& policy, std::span<const CompanyMember> members, Cost cost) {
  std::vector<int> drafts;
  for (int i = 0; i < 8; ++i) {
    drafts = policy.plan(members, 0);
    const auto drafted = std::accumulate(drafts.begin(), drafts.end(), int64_t{0});
    const int64_t rows = std::ssize(members) + drafted;
    policy.observe(rows, cost(rows), drafted > 0 ? std::ssize(members) : 0, 0.5);
  }
  return drafts;
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

TEST(CompanyPolicy, ProbingIsRare) {
  CompanyPolicy policy;
  const std::vector<CompanyMember> members(8, CompanyMember{nullptr, 7});
  int64_t probes = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::vector<int> drafts = policy.plan(members, 0);
    const auto drafted = std::accumulate(drafts.begin(), drafts.end(), int64_t{0});
    probes += drafted > 0 ? 1 : 0;
    policy.observe(8 + drafted, static_cast<double>(8 + drafted), drafted > 0 ? 8 : 0, 1.0);
  }
  EXPECT_GE(probes, 3);
  EXPECT_LE(probes, 16);
}

}  // namespace
}  // namespace octet
