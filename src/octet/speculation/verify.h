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
#include "octet/sampling/token_constraint.h"
#include "octet/sampling/token_scores.h"
#include "octet/speculation/proposal.h"
#include "octet/tensor/rows.h"

namespace octet {

struct Verdict {
  int accepted = 0;
  std::vector<TokenId> tokens;      // accepted + 1
  std::vector<TokenScores> scores;  // one a token; empty when nobody asked
};

/// How one sequence wants its rows judged.
struct Judge {
  const Sampler& sampler;
  PenaltyWindow penalties;  // of the text before the block
  VerifyRule rule = VerifyRule::kCompare;
  int64_t first_position = 0;             // of the token that row 0 gives
  TokenConstraint* constraint = nullptr;  // has seen the text before the block
  int64_t scores = -1;  // likeliest tokens wanted beside the chosen one; -1: no scores
};

/// logits [m + 1, vocabulary]: row i gives the token at first_position + i; adjusted in place, row
/// by row, only as far as the walk gets. Row i sees the penalties and the constraint of the text
/// before it, accepted rows of this block included. The constraint has seen all tokens of the
/// verdict afterwards; the caller takes back what is not published.
Verdict verify(const Proposal& proposal, Rows logits, Judge judge);

}  // namespace octet
