// Drafting in company against a simulated machine: costs and acceptance are given, time is added
// up, nothing is timed. Replies come and go, so that little is ever known for long.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "octet/speculation/company_policy.h"

namespace octet {
namespace {

constexpr int kDrafts = 7;

/// A step costs what reading the weights does, or what its rows do, whichever is more.
struct Machine {
  const char* name;
  double weights_ms;
  double row_ms;
  double draft_ms;  // of one sequence's block
  double draft_row_ms;

  double forward_ms(int64_t rows) const {
    return std::max(weights_ms, 0.3 * weights_ms + row_ms * static_cast<double>(rows));
  }
  double drafts_ms(int64_t drafting) const {
    return drafting == 0 ? 0.0 : draft_ms + draft_row_ms * static_cast<double>(drafting);
  }
};

constexpr std::array kMachines = {
    Machine{"many cores: 16 rows are free", 50.0, 2.2, 12.0, 1.0},
    Machine{"few cores: 5 rows are free", 50.0, 7.0, 15.0, 6.0},
    Machine{"all in cache: each row costs", 2.0, 1.0, 0.8, 0.5}};

/// Tokens a millisecond; acceptance and length of replies are given. `draft`: by the policy.
double rate(const Machine& machine, int64_t count, double acceptance, bool draft, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  std::normal_distribution<double> noise(1.0, 0.05);
  const StepCosts costs;
  CompanyPolicy policy;
  std::vector<std::unique_ptr<BlockPolicy>> replies;
  double ms = 0.0;
  double tokens = 0.0;
  for (int step = 0; step < 600; ++step) {
    std::erase_if(replies, [&](const auto&) { return uniform(random) < 0.01; });
    while (std::ssize(replies) < count) {
      replies.push_back(std::make_unique<BlockPolicy>(costs, kDrafts));
    }
    std::vector<CompanyMember> members;
    for (const auto& reply : replies) {
      members.push_back({reply.get(), kDrafts});
    }
    const std::vector<int> plan =
        draft ? policy.plan(members, 0) : std::vector<int>(replies.size(), 0);
    int64_t rows = count;
    int64_t drafting = 0;
    CompanyStep report;
    for (size_t i = 0; i < replies.size(); ++i) {
      rows += plan[i];
      drafting += plan[i] > 0 ? 1 : 0;
      int accepted = 0;
      while (accepted < plan[i] && uniform(random) < acceptance) {
        ++accepted;
      }
      report.tokens += accepted + 1;
      if (plan[i] > 0) {
        report.fates.push_back({accepted, std::min(accepted + 1, plan[i])});
        replies[i]->observe(plan[i], accepted, report.fates.back().judged);
      }
    }
    report.sequences = count;
    report.rows = rows;
    report.drafting = drafting;
    report.forward_ms = machine.forward_ms(rows) * std::max(0.5, noise(random));
    report.draft_ms = machine.drafts_ms(drafting) * std::max(0.5, noise(random));
    ms += report.forward_ms + report.draft_ms;
    tokens += static_cast<double>(report.tokens);
    policy.observe(report);
  }
  return tokens / ms;
}

/// Over plain decoding, the mean of some seeds.
double speedup(const Machine& machine, int64_t count, double acceptance) {
  double sum = 0.0;
  constexpr int kSeeds = 5;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    sum += rate(machine, count, acceptance, true, seed) /
           rate(machine, count, acceptance, false, seed);
  }
  return sum / kSeeds;
}

TEST(CompanyPolicy, NeverLosesMuchToPlainSteps) {
  for (const Machine& machine : kMachines) {
    for (const int64_t count : {2, 3, 4, 8, 16}) {
      for (const double acceptance : {0.0, 0.3, 0.6, 0.9}) {
        const double faster = speedup(machine, count, acceptance);
        EXPECT_GE(faster, 0.98) << fmt::format(
            "{}, {} replies, acceptance {}", machine.name, count, acceptance
        );
      }
    }
  }
}

TEST(CompanyPolicy, GainsWhereRowsAreFree) {
  EXPECT_GE(speedup(kMachines[0], 2, 0.9), 2.5);
  EXPECT_GE(speedup(kMachines[1], 2, 0.9), 1.3);
}

}  // namespace
}  // namespace octet
