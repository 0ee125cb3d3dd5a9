// Turns rows of draft logits into a proposal, with the same sampler that will judge it: penalties,
// bias and mask as the target's row will see them if the drafts hold, then argmax, a coupled draw
// or, under the ratio rule, a draw from q. For every drafter that has logits. Invariant: fills
// out->tokens, and out->q exactly when the ratio rule needs it.
#pragma once

#include "octet/speculation/drafter.h"
#include "octet/tensor/rows.h"

namespace octet {

/// logits [>= task.count, columns], adjusted in place; row j is for position tokens.size() + j.
/// softcap: of the target, where probabilities matter (0: none). columns: the tokens that the rows
/// cover; no other is drafted.
void pick_drafts(const DraftTask& task, Rows logits, float softcap, TokenColumns columns = {});

}  // namespace octet
