// Picks the k greatest logits of a long row in one pass. Not a sort of the row.
// Invariant: the result is ordered by logit, equal logits by id, lowest first; NaN and minus
// infinity are left out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "octet/base/token.h"

namespace octet {

struct Candidate {
  TokenId token = 0;
  float logit = 0.0F;
};

/// k >= 1; fewer when the row has fewer finite logits.
std::vector<Candidate> top_k_candidates(std::span<const float> logits, int64_t k);

/// The greatest logit; minus infinity when there is none.
float greatest_logit(std::span<const float> logits);

}  // namespace octet
