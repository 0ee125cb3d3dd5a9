// Predicts what drafting is worth before anything is run: from measured costs of a verify cycle and
// the acceptance of a drafter, the speed of every number of drafts, by context and by the number
// of conversations at a time. Only arithmetic; nothing is measured here. Invariant: where a cost
// was measured the prediction uses that cost; what lies between or beyond is interpolated as
// stated below.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace octet {

/// Costs at one context, of one conversation.
struct ContextCosts {
  int64_t context = 0;             // positions before the rows
  std::vector<double> forward_ms;  // [k - 1]: a pass of k rows; k from 1, at least 2 of them
  double draft_ms = 0.0;           // a block of the drafter, whatever its rows are used for
  double inject_ms = 0.0;          // of one accepted position
};

/// A prompt's cost in one pass.
struct PrefillCosts {
  int64_t rows = 0;
  double ms = 0.0;
};

struct CycleCosts {
  std::vector<ContextCosts> contexts;  // ascending, at least one, all with as many rows
  std::vector<PrefillCosts> prefill;   // ascending; may be empty
  int block = 8;                       // rows of a draft block: one more than it has drafts
  /// That the drafter makes and whose verification was measured.
  int most_drafts() const {
    return std::min(block, static_cast<int>(contexts.front().forward_ms.size())) - 1;
  }
};

/// Probability that draft k (from 0) of a block is accepted when those before it are.
using AcceptanceProfile = std::vector<double>;

/// The same probability in every place, so that blocks of all drafts give `length` tokens a step.
/// Throws Error(kInvalidArgument) unless 1 <= length <= drafts + 1.
AcceptanceProfile profile_of_length(double length, int drafts);

/// Tokens a step with the first `drafts` drafts of the profile: 1 + sum of the joint probabilities.
double tokens_per_step(const AcceptanceProfile& profile, int drafts);

struct PlannedLength {
  int drafts = 0;
  double tokens = 0.0;   // a step, of one conversation
  double step_ms = 0.0;  // of all conversations together
  double speedup = 0.0;  // over plain decoding of as many conversations
  double needs = 0.0;    // tokens a step from which this length is faster than plain decoding
};

/// What one wants to run.
struct PlanPlace {
  int64_t context = 0;  // of each conversation
  int conversations = 1;
};

/// Costs of a step:
///   forward(n rows) = that of n rows of one conversation at the smallest context, beyond the
///     measured rows on the line through the last of them, plus for each conversation what its
///     rows cost more at its context (attention)
///   drafts = a block a conversation, growing as a forward pass of as many rows does
///   injection = one position for every token.
/// Contexts between measured ones are interpolated linearly, those beyond extrapolated, but to no
/// less than at the nearest measured one.
/// Returns lengths 0 to most_drafts(), 0 being plain decoding.
std::vector<PlannedLength> plan_drafts(
    const CycleCosts& costs, const AcceptanceProfile& profile, const PlanPlace& place
);

/// The fastest of them.
const PlannedLength& best_of(std::span<const PlannedLength> lengths);

/// A benchmark's shape: so many tokens in the cache, then a prompt, then a reply.
struct Workload {
  int64_t cached = 0;
  int64_t prompt = 0;
  int64_t output = 0;
  int conversations = 1;  // of this shape, that begin together
};

struct PlannedWorkload {
  double first_token_ms = 0.0;  // until all conversations have one: their prompts added
  double plain_ms = 0.0;        // all of it, decoded plainly
  double drafted_ms = 0.0;      // with `drafts` drafts
  int drafts = 0;               // the best number at the middle of the reply
};

/// A prompt costs what the measured one of the nearest length costs a row, and in every row what
/// attention to the cache adds, and to the prompt itself where it is longer than the measured one.
/// Throws Error(kInvalidArgument) when the costs have no prefill.
PlannedWorkload plan_workload(
    const CycleCosts& costs, const AcceptanceProfile& profile, const Workload& workload
);

}  // namespace octet
