// Decides how many drafts a step should verify, 0 included, from what steps have cost and how
// drafts like these fared lately. It changes when tokens arrive, never which. Two parts: StepCosts
// is shared by all sequences of an engine, BlockPolicy belongs to one sequence. Invariant: while
// drafting does not pay, looking again costs at most kProbeShare of plain decoding (source).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "octet/speculation/proposal.h"

namespace octet {

/// Running costs of steps: the target by number of rows, and a draft with the injection before it.
/// Medians of the last few observations, because a shared machine has outliers; observations from
/// before a long pause are dropped, because it drifts.
class StepCosts {
 public:
  static constexpr int kMaxRows = kMaxDrafts + 1;

  void observe_forward(int rows, double ms);
  /// Of a draft that follows another: the first one after a pause has more features to take in.
  void observe_draft(double ms);

  bool knows_forward(int rows) const;
  bool knows_draft() const { return draft_.count > 0; }
  /// Milliseconds of a pass over `rows` rows; between and beyond what was seen, interpolated
  /// linearly in rows. 0 when nothing was seen.
  double forward_ms(int rows) const;
  double draft_ms() const;
  /// Passes seen since one over `rows` rows was.
  int64_t forward_age(int rows) const;

 private:
  struct Samples {
    std::array<double, 15> recent{};
    int count = 0;  // since the last long pause
    int64_t last_pass = 0;
    double median = 0.0;
    void add(double ms, int64_t pass);
  };
  int64_t passes_ = 0;
  std::array<Samples, kMaxRows + 1> forward_;  // by rows; [0] unused
  Samples draft_;
};

class BlockPolicy {
 public:
  /// `costs` must outlive the policy.
  BlockPolicy(const StepCosts& costs, int max_drafts);

  /// Before drafting: how many drafts to ask for, 0 (decode plainly) or the most that there may be.
  int next_drafts();

  /// After drafting: how many of the `drafted` drafts to verify, from the first on; 0 .. drafted.
  /// confidence: by draft, how sure the drafter is of it, in [0, 1]; empty when it does not say,
  /// then its place in the block stands in.
  int keep(int drafted, std::span<const float> confidence);

  /// What became of a step that verified `drafted` drafts: `accepted` of them were right. A step
  /// that the text's end cut says nothing about the row behind the cut: give judged = rows whose
  /// fate is known.
  void observe(int drafted, int accepted, int judged);

  /// Estimated probability that the draft in place k of a block is right when those before it are.
  double conditional(int k) const { return probability(k, {}); }

  /// Whether the drafter should be fed: always while drafting, else for some time before a look, so
  /// that it finds a context.
  bool wants_features() const;

 private:
  /// Drafts of one class and how many were right, exponentially forgotten.
  struct Record {
    double hits = 0.0;
    double trials = 0.0;
    void add(bool right);
  };
  static constexpr int kConfidenceClasses = 13;

  double probability(int row, std::span<const float> confidence) const;
  int unknown_cost() const;
  int best_length(int drafted, std::span<const float> confidence) const;
  void pay(double tokens, double ms);
  void forget();
  bool losing() const;
  double ms_per_token() const;
  int64_t probe_distance() const;

  const StepCosts& costs_;
  int max_drafts_;
  std::array<Record, kConfidenceClasses> by_confidence_;
  std::array<Record, kMaxDrafts> by_place_;
  std::vector<int> classes_;  // of the drafts kept in this step; empty: by place
  double tokens_ = 0.0;       // of steps that drafted, exponentially forgotten
  double ms_ = 0.0;           // what they cost
  bool drafting_ = true;
  int64_t until_probe_ = 0;  // while not drafting
  bool looking_ = false;     // this step is such a look
  int looks_ = 0;            // since drafting was given up
  int64_t until_plain_ = 0;  // while drafting: plain steps have a cost to learn too
  int forced_ = -1;          // length to verify next for the sake of its cost; -1: as pays
};

}  // namespace octet
