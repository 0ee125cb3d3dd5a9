// Decides how many drafts a step should verify, 0 included, from what steps have cost and how
// drafts like these fared lately. It changes when tokens arrive, never which. Two parts: StepCosts
// is shared by all sequences of an engine, BlockPolicy belongs to one sequence. Invariant: while
// drafting does not pay, looking again costs at most kProbeShare of plain decoding (source): a look
// drafts, verifies nothing, and compares the drafts with what the target goes on to write.
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
  /// Of a draft after plain steps.
  void observe_look(double ms);

  bool knows_forward(int rows) const;
  /// Whether it was seen more than once since the last long pause: the first pass of a kind is
  /// often a cold one.
  bool sure_of_forward(int rows) const;
  bool knows_draft() const { return draft_.count > 0; }
  /// Milliseconds of a pass over `rows` rows; between and beyond what was seen, interpolated
  /// linearly in rows. 0 when nothing was seen.
  double forward_ms(int rows) const;
  double draft_ms() const { return draft_.median; }
  /// Of a look; before one was seen, of a draft.
  double look_ms() const { return look_.count > 0 ? look_.median : draft_.median; }
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
  Samples look_;
};

class BlockPolicy {
 public:
  /// `costs` must outlive the policy.
  BlockPolicy(const StepCosts& costs, int max_drafts);

  int max_drafts() const { return max_drafts_; }
  /// Whether drafting pays at present, or might: nothing is known yet.
  bool drafting() const { return drafting_; }

  /// A policy that begins another text with what was learnt here. The next look comes when it would
  /// have come here.
  BlockPolicy for_another_text() const;

  /// Before drafting: how many drafts to ask for, 0 (decode plainly) or the most that there may be.
  int next_drafts();

  /// After drafting: how many of the drafts to verify, from the first on; 0 .. all.
  /// confidence: by draft, how sure the drafter is of it, in [0, 1]; empty when it does not say,
  /// then its place in the block stands in.
  int keep(std::span<const TokenId> drafts, std::span<const float> confidence);

  /// What became of a step that verified `drafted` drafts: `accepted` of them were right. A step
  /// that the text's end cut says nothing about the row behind the cut: give judged = rows whose
  /// fate is known.
  void observe(int drafted, int accepted, int judged);

  /// After every step of decoding: the tokens that it added to the text.
  void published(std::span<const TokenId> tokens);
  /// The text goes on elsewhere: what a look drafted is not judged.
  void abandon_look() { look_ = Look(); }

  /// Estimated probability that the draft in place k of a block is right when those before it are,
  /// where the drafts of other texts are known to be right with probability `expected`.
  double conditional(int k, double expected) const;

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

  /// Drafts that nobody verifies, and how many of them the text has met.
  struct Look {
    std::vector<TokenId> drafts;
    std::vector<int> classes;  // by confidence; empty: by place
    int kept = 0;              // so many would have been verified
    size_t met = 0;
  };

  double probability(int row, std::span<const float> confidence) const;
  void learn(int row, std::span<const int> classes, bool right);
  int longest_block() const;
  int unknown_cost() const;
  int cost_to_refresh() const;
  int best_length(int drafted, std::span<const float> confidence) const;
  bool suspicious() const;
  void begin();
  void begin_if_cheaper();
  int next_of_plain();
  int next_of_drafting();
  void pay(double tokens, int rows);
  void judge_look(int right);
  void end_run();
  void forget();
  double block_ms(int rows) const;
  double balance_ms() const;
  double ms_per_token() const;
  int64_t probe_distance() const;

  const StepCosts& costs_;
  int max_drafts_;
  std::array<Record, kConfidenceClasses> by_confidence_;
  std::array<Record, kMaxDrafts> by_place_;
  std::vector<int> classes_;  // of the drafts kept in this step; empty: by place
  // Of steps that drafted, exponentially forgotten: their tokens, and their number by rows. Counts
  // instead of times, so that a cost that turns out to be another is another for all of them.
  double trust_blocks_;  // full blocks that the balance is thought to have besides
  double tokens_ = 0.0;
  std::array<double, kMaxDrafts + 2> blocks_{};
  bool drafting_ = true;
  int64_t until_probe_ = 0;  // while not drafting
  bool looking_ = false;     // this step is a look
  Look look_;                // the last one, until the text has judged it
  int run_ = 0;              // looks in a row that beat plain decoding
  double run_tokens_ = 0.0;  // of all but the first
  double run_ms_ = 0.0;
  bool check_cost_ = false;  // the next step measures a full block
  int looks_ = 0;            // since drafting was given up
  int64_t until_plain_;      // while drafting: plain steps have a cost to learn too
  int cheaper_steps_ = 0;    // while not: so many in a row were dearer than the balance of drafting
  double plain_ms_given_up_ = 0.0;  // a plain step's cost when drafting was given up
  int suspicion_ = 0;               // so many plain steps are still to be taken soon
  int forced_ = -1;                 // length to verify next for the sake of its cost; -1: as pays
  int short_blocks_ = 0;   // in a row that the end of the text or its limit kept below max_drafts_
  int longest_short_ = 0;  // of them
};

}  // namespace octet
