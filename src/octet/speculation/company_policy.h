// Decides how many drafts each of several sequences should verify in a step that they share. Rows
// are cheap while weights are what a step waits for and dear once arithmetic is, so with growing
// company drafts give way, the least likely ones first, down to none. One sequence alone is the
// business of block_policy.h, whose estimates of acceptance are used here. It changes when tokens
// arrive, never which. Invariant: looks at other lengths get rarer each time they bring nothing, so
// probing stays a small share of all steps.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "octet/speculation/block_policy.h"

namespace octet {

/// A cost as a function of an amount of work, learnt from use: medians of the last observations at
/// amounts that were seen, linear between them, constant below and proportional beyond.
class CostCurve {
 public:
  void observe(int64_t amount, double ms);
  bool knows(int64_t amount) const { return points_.contains(bucket(amount)); }
  double at(int64_t amount) const;

 private:
  struct Point {
    std::array<double, 5> recent{};
    std::array<double, 5> amounts{};
    int64_t count = 0;
    double ms() const;
    double amount() const;
  };
  static int64_t bucket(int64_t amount);
  std::map<int64_t, Point> points_;
};

/// One decoding sequence of the step to plan.
struct CompanyMember {
  const BlockPolicy* policy = nullptr;  // its acceptance; null: it is assumed to be average
  int most = 0;                         // drafts that it may verify
};

class CompanyPolicy {
 public:
  /// Drafts for each member. other_rows: rows of prompts in the same step.
  std::vector<int> plan(std::span<const CompanyMember> members, int64_t other_rows);

  /// What a step of decoding sequences alone has cost: rows of the target, and how many sequences
  /// drafted.
  void observe(int64_t rows, double forward_ms, int64_t drafting, double draft_ms);

  const CostCurve& forward_costs() const { return forward_; }
  const CostCurve& draft_costs() const { return draft_; }

 private:
  std::vector<int> best(std::span<const CompanyMember> members, int64_t other_rows) const;
  bool probe_due(bool drafting);

  std::map<int64_t, int> looks_;  // full steps tried, by sequences
  CostCurve forward_;             // by rows
  CostCurve draft_;               // by sequences that draft
  int64_t distance_ = 0;
  int64_t left_ = 0;
  bool drafted_ = false;  // the last plan had drafts
};

}  // namespace octet
