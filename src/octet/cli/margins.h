// By how much the best logit leads the second, for every token of a reply: says where two engines
// may honestly differ. Found by one more pass over the finished text; the law that rows do not
// depend on their company makes these the very logits that the reply was chosen from.
#pragma once

#include <span>
#include <vector>

#include "octet/base/token.h"
#include "octet/kernels/ops.h"
#include "octet/models/target_model.h"

namespace octet::cli {

/// One value a token of text[prompt_length ..]: lead of the best logit over the second, before
/// sampling.
std::vector<float> top_margins(
    TargetModel& target, KvType kv_type, std::span<const TokenId> text, int64_t prompt_length
);

}  // namespace octet::cli
