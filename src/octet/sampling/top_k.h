// Picks the k greatest logits of a long row in one pass. Not a sort of the row.
// Invariant: the result is ordered by logit, equal logits by id, lowest first; NaN and minus
// infinity are left out.
#pragma once

#include <array>
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

/// The greatest logits of so many classes: tokens whose ids are equal modulo their number. In one
/// pass without branches; the likeliest tokens of a row are nearly always in different classes.
/// Minus infinity for a class that has none.
inline constexpr size_t kRivals = 32;
std::array<float, kRivals> greatest_by_class(std::span<const float> logits);

/// The greatest logit; minus infinity when there is none.
float greatest_logit(std::span<const float> logits);

}  // namespace octet
