// Decides how many drafts each of several sequences should verify in a step that they share. Rows
// are cheap while weights are what a step waits for and dear once arithmetic is, so with growing
// company drafts give way, the least likely ones first, down to none. One sequence alone is the
// business of block_policy.h, whose estimates of acceptance are used here. It changes when tokens
// arrive, never which. Invariant: what drafting has cost beyond plain steps for the same tokens is
// kept in a purse, which a small share of all time fills; while it is empty nobody drafts. So,
// whatever the estimates say, little is lost to plain steps. Where prompts share the step its
// forward pass is charged as that of the decoding rows alone would be. Steps whose rows are not
// this policy's alone cannot be told from plain ones and are not charged.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
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
  /// No more than it can be: what the most work up to it that was seen has cost. 0: nothing was
  /// seen.
  double least(int64_t amount) const;

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
  const BlockPolicy* policy = nullptr;  // its acceptance; null: it is assumed to be as others are
  int most = 0;                         // drafts that it may verify
};

/// What became of one sequence's drafts.
struct DraftFate {
  int accepted = 0;
  int judged = 0;  // drafts whose fate is known
};

/// A step, of its decoding sequences.
struct CompanyStep {
  int64_t sequences = 0;
  int64_t rows = 0;         // of the target, for them
  int64_t prompt_rows = 0;  // and for prompts
  int64_t drafting = 0;     // sequences that had drafts verified
  int64_t tokens = 0;       // published
  double forward_ms = 0.0;
  double draft_ms = 0.0;
  std::vector<DraftFate> fates;  // of those that drafted
  /// False: rows or drafts are not this policy's alone, because some draft a fixed number or have
  /// tokens that a grammar leaves no choice about. Such a step is not charged.
  bool planned = true;
};

class CompanyPolicy {
 public:
  /// Drafts for each member. other_rows: rows of prompts in the same step.
  std::vector<int> plan(std::span<const CompanyMember> members, int64_t other_rows);

  void observe(const CompanyStep& step);

 private:
  struct Record {
    double hits = 0.0;
    double trials = 0.0;
  };

  double expected(int place) const;
  std::vector<double> gains(const CompanyMember& member) const;
  std::vector<int> best(std::span<const CompanyMember> members, int64_t other_rows) const;
  bool promising(std::span<const CompanyMember> members, int64_t rows) const;
  std::vector<int> look(std::span<const CompanyMember> members);
  bool probe_due(bool drafting);
  void learn(std::span<const DraftFate> fates);
  void account(const CompanyStep& step);

  CostCurve forward_;                             // by rows
  CostCurve draft_;                               // by sequences that draft
  std::array<Record, kMaxDrafts> places_{};       // how all drafts fared, by place in their block
  std::map<std::pair<int64_t, int>, int> looks_;  // tried, by sequences and drafts of each
  double purse_ms_ = 0.0;
  bool purse_given_ = false;  // something to begin with
  int64_t distance_ = 0;
  int64_t left_ = 0;
  size_t turn_ = 0;       // who drafts in the next probe
  bool drafted_ = false;  // the last plan had drafts
};

}  // namespace octet
