// Judges a proposal with the target's logits. Pure: values in, value out; nothing is published or
// undone here. Invariant: tokens = the accepted drafts followed by one token of the target's own,
// so 1 .. m + 1 of them, and each has the target's final distribution given the text before it,
// whichever rule is used.
#pragma once

#include <cstdint>
#include <vector>

#include "octet/base/token.h"
#include "octet/sampling/penalty_window.h"
#include "octet/sampling/sampler.h"
#include "octet/speculation/proposal.h"
#include "octet/tensor/rows.h"

namespace octet {

struct Verdict {
  int accepted = 0;
  std::vector<TokenId> tokens;  // accepted + 1
};

/// logits [m + 1, vocabulary]: row i gives the token at first_position + i; adjusted in place, row
/// by row, only as far as the walk gets. Row i sees the penalties of the text before it, accepted
/// rows of this block included.
Verdict verify(
    const Proposal& proposal,
    Rows logits,
    const Sampler& sampler,
    PenaltyWindow penalties,
    VerifyRule rule,
    int64_t first_position
);

}  // namespace octet
