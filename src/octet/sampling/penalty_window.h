// How often each token occurs in the stretch of text that the penalties look at. A value:
// verification advances a copy along a block, commit advances the sequence's own. Holds counts, not
// text beyond the last_n window. Invariant: counts are those of the last `last_n` (0: all) of the
// tokens pushed.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>

#include "octet/base/token.h"
#include "octet/sampling/sampling_params.h"
#include "octet/sampling/token_columns.h"

namespace octet {

class PenaltyWindow {
 public:
  PenaltyWindow() = default;
  /// A window for `params` that has seen the prompt where the scope includes it.
  PenaltyWindow(const SamplingParams& params, std::span<const TokenId> prompt);

  void push(TokenId token);

  /// The logit of every token seen: l > 0 ? l / repetition : l * repetition, then - presence -
  /// frequency * count.
  void apply(std::span<float> logits, TokenColumns columns = {}) const;

 private:
  float repetition_ = 1.0F;
  float presence_ = 0.0F;
  float frequency_ = 0.0F;
  bool active_ = false;
  int64_t last_n_ = 0;
  std::deque<TokenId> recent_;  // only when last_n_ > 0
  std::unordered_map<TokenId, int32_t> counts_;
};

}  // namespace octet
