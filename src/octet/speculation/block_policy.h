// Decides how many drafts a step should verify, 0 included, from what steps have cost and how many
// drafts were accepted lately. It changes when tokens arrive, never which. Two parts: StepCosts is
// shared by all sequences of an engine, BlockPolicy belongs to one sequence. Invariant: looking
// again at a length that was losing gets rarer each time it loses again, so the cost of probing
// stays a small share of a long text (kFirstProbe, kLastProbe in the source).
#pragma once

#include <array>
#include <cstdint>

#include "octet/speculation/proposal.h"

namespace octet {

/// Running costs of steps: the target by number of rows, and a draft with the injection before it.
/// Medians of the last few observations, because a shared machine has outliers.
class StepCosts {
 public:
  static constexpr int kMaxRows = kMaxDrafts + 1;

  void observe_forward(int rows, double ms);
  void observe_draft(double ms);

  bool knows_forward(int rows) const;
  bool knows_draft() const { return draft_.count > 0; }
  /// Milliseconds of a pass over `rows` rows; between and beyond what was seen, interpolated
  /// linearly in rows. 0 when nothing was seen.
  double forward_ms(int rows) const;
  double draft_ms() const;

 private:
  struct Samples {
    std::array<double, 7> recent{};
    int count = 0;  // ever
    void add(double ms);
    double median() const;
  };
  std::array<Samples, kMaxRows + 1> forward_;  // by rows; [0] unused
  Samples draft_;
};

/// How many tokens a second `drafts` drafts would give: (1 + sum of joint acceptance) over the
/// step's cost. conditional[k] is the probability that row k + 1 is accepted when the rows before
/// it were (dflash.md section 9.1).
struct BlockForecast {
  int drafts = 0;
  double tokens_per_ms = 0.0;
};
BlockForecast best_block(
    const StepCosts& costs, const std::array<double, kMaxDrafts>& conditional, int max_drafts
);

class BlockPolicy {
 public:
  /// `costs` must outlive the policy.
  BlockPolicy(const StepCosts& costs, int max_drafts);

  /// How many drafts the next step should verify, 0 .. max_drafts.
  int next_drafts();

  /// What became of a step that verified `drafted` drafts: `accepted` of them were right. A step
  /// that the text's end cut says nothing about the row behind the cut: give judged = rows whose
  /// fate is known.
  void observe(int drafted, int accepted, int judged);

  /// Estimated probability that draft k + 1 is right when those before it are.
  double conditional(int k) const;

 private:
  /// Counts down to the next look at another length; the distance doubles when the look brought
  /// nothing.
  struct Probe {
    int64_t distance = 0;
    int64_t left = 0;
    bool due();
    void lost();
    void reset();
  };
  int explore_costs() const;

  const StepCosts& costs_;
  int max_drafts_;
  std::array<double, kMaxDrafts> hits_{};  // exponentially forgotten
  std::array<double, kMaxDrafts> trials_{};
  Probe longer_;   // a longer block than the best one
  Probe plain_;    // what a plain step costs now
  int best_ = -1;  // of the last step; -1: none yet
};

}  // namespace octet
