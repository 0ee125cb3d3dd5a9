// Decides how many drafts a step should verify, 0 included, from what steps have cost and how
// drafts like these fared lately. It changes when tokens arrive, never which. What steps cost
// (step_costs.h) is shared by all sequences of an engine, a BlockPolicy belongs to one of them.
// While drafting does not pay, a look now and then drafts, verifies no draft but those that are
// sure enough to be worth their rows, and compares the others with what the target goes on to
// write; after one that would have beaten plain decoding blocks follow for as long as they beat it.
// Invariant: looks are so seldom that their drafts cost kProbeShare (source) of plain decoding, the
// first few after drafting was given up excepted.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "octet/speculation/draft_balance.h"
#include "octet/speculation/proposal.h"
#include "octet/speculation/step_costs.h"

namespace octet {

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

  /// Of how many rows before the next draft the drafter should be fed the features, at most: of all
  /// that it can see while drafting, else of a few before a look, so that it finds a context, and
  /// of none until then.
  int64_t features_wanted() const;

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
  TokensByLength tokens_by_length(int known, int right) const;
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
  void settle(int verified, int accepted);
  void judge_look(int right);
  void follow(double tokens, int rows);
  void end_run();
  void forget();
  double ms_per_token() const;
  int64_t probe_distance() const;

  const StepCosts& costs_;
  int max_drafts_;
  std::array<Record, kConfidenceClasses> by_confidence_;
  std::array<Record, kMaxDrafts> by_place_;
  std::vector<int> classes_;       // of the drafts of this step; empty: by place
  std::vector<float> confidence_;  // likewise
  DraftBalance balance_;
  int64_t steps_ = 0;
  bool drafting_ = true;
  int64_t until_probe_ = 0;  // while not drafting
  bool looking_ = false;     // this step is a look, or a block that follows one
  Look look_;                // the last one, until the text has judged it
  int run_ = 0;              // blocks in a row, from a look on, that beat plain decoding
  double run_tokens_ = 0.0;  // of all but the look
  double run_ms_ = 0.0;
  bool after_look_ = false;  // drafting last began after a look, and not with the text
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
