// One step of any number of sequences: propose -> forward -> verify -> license -> commit, each
// stage a value handed to the next. A sequence with an unprocessed prompt takes a chunk of it
// instead of drafts; one without drafts decodes plainly; all of them share the forward pass.
// Invariant: what a sequence publishes depends on itself alone, not on drafts, block length or
// company.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "octet/models/target_model.h"
#include "octet/speculation/block_policy.h"
#include "octet/speculation/drafter.h"
#include "octet/speculation/sequence.h"
#include "octet/speculation/verify.h"

namespace octet {

/// What happened to one sequence in a step.
struct SequenceStep {
  int64_t rows = 0;     // rows of the target that it took
  bool prompt = false;  // a chunk of the prompt (its last one publishes the first token)
  int drafted = 0;      // drafts verified
  int accepted = 0;     // drafts that equal the target's choice, published or not
  int published = 0;    // tokens published
  FinishReason finish = FinishReason::kNone;
  int forced = 0;    // of the drafted: given by a constraint that allowed nothing else
  int proposed = 0;  // drafts made; a block policy may have verified fewer

  /// Published tokens that were drafts: they come first, the target's own token is last.
  int published_drafts() const { return published < accepted ? published : accepted; }
  /// The step was cut by an end, a limit or a cancellation: what it would have accepted beyond is
  /// unknown or unread.
  bool cut() const { return finish != FinishReason::kNone && published < accepted + 1; }
  /// Drafts whose fate is known: up to the first wrong one, or to the cut.
  int judged() const {
    const int reached = cut() ? published : accepted + 1;
    return reached < drafted ? reached : drafted;
  }
};

struct StepTimes {
  double draft_ms = 0.0;    // propose, the injection of features included
  double forward_ms = 0.0;  // the target
  double verify_ms = 0.0;   // choosing tokens, licence included
  double commit_ms = 0.0;
};

struct StepReport {
  std::vector<SequenceStep> sequences;  // in the order given
  StepTimes times;
};

class Cycle {
 public:
  /// Both must outlive the cycle. Throws Error(kMismatch) when the drafter taps layers that the
  /// target lacks.
  Cycle(TargetModel& target, Drafter& drafter);

  /// Advances every sequence by one step. They must be unfinished and have room for a token.
  StepReport step(std::span<Sequence* const> sequences);

  /// What steps of a single decoding sequence have cost, for block policies.
  const StepCosts& costs() const { return costs_; }

 private:
  struct Plan;
  void propose(std::span<Plan> plans);  // drafts, where a sequence is ready for them
  static void cut_proposals(std::span<Plan> plans);
  void assemble(std::span<Plan> plans);  // rows for the target
  void forward(std::span<Plan> plans);
  void judge(std::span<Plan> plans);  // verify, then license
  SequenceStep commit(Plan& plan);

  void record_costs(const StepReport& report);

  TargetModel& target_;
  Drafter& drafter_;
  ForwardRows rows_;
  StepCosts costs_;
  bool drafted_before_ = false;  // the last step of a single sequence made drafts
};

}  // namespace octet
