// What a drafter hands over: guesses for the positions after the anchor, and under the ratio rule
// the distributions that they were drawn from. Guesses are never trusted; a wrong one costs time,
// not text. Invariant: under the ratio rule q.size() == tokens.size(), and tokens[j] was drawn from
// q[j]; otherwise q is empty.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "octet/base/token.h"
#include "octet/sampling/distribution.h"
#include "octet/sampling/sampler.h"
#include "octet/tensor/rows.h"

namespace octet {

/// How sampled text is verified (docs/life_of_a_block.md). Greedy text is the same under both.
enum class VerifyRule : uint8_t {
  kCompare,  // draw the target's own token and go on while it equals the draft; text does not
             // depend on the drafter
  kRatio,  // accept with min(1, p / q), else draw from max(p - q, 0); the same law, text depends on
           // the drafter
};

/// How one row of draft logits becomes a token when temperature > 0.
enum class DraftChoice : uint8_t {
  kArgmax,
  kCoupled,     // drawn with the noise that the target will use at that position
  kBySureness,  // argmax where the draft is sure of it, else coupled
};

inline constexpr int kMaxDrafts = 15;

/// Per row of a block: row 0 is the first draft. Rows beyond the list take the last entry.
struct DraftChoices {
  std::vector<DraftChoice> rows = {DraftChoice::kBySureness};
  /// The likeliest token's probability from which a draft counts as sure. A sure drafter is right
  /// about as often as its argmax is the target's choice; an unsure one gains by following the
  /// target's noise.
  float sure_from = 0.4F;
  DraftChoice row(int j) const;
};

/// What was measured to be accepted most on the trained tiny pair at temperature 1: by sureness in
/// every row, from 0.4 (flat between 0.3 and 0.6). On held-out dialogues argmax everywhere gives 5
/// % fewer tokens a step, coupled everywhere 6 % fewer.
DraftChoices default_draft_choices();

struct Proposal {
  std::vector<TokenId> tokens;
  /// How sure the drafter is of each token, in [0, 1], where it was asked and can tell; else empty.
  /// Comparable from draft to draft, not a calibrated probability.
  std::vector<float> confidence;
  std::vector<Distribution> q;
  /// What q looks at in its whole form.
  std::vector<std::vector<float>> logits;

  void clear();
  /// Keeps the first `count` drafts.
  void truncate(int64_t count);
};

/// Nothing behind an end token can be published, so nothing behind it is worth verifying: drops it.
void cut_after_end(Proposal& proposal, std::span<const TokenId> stop_tokens);

}  // namespace octet
