// Logits to token: the one function that plain decoding, verification and drafts all use. The order
// of its steps:
//   1 penalties  2 logit bias  3 token mask (a hook: grammars)  4 temperature  5 top-k  6 top-p  7
//   min-p  8 draw
// Temperature 0 ends after step 3 with the argmax, the lowest id among equals.
// Invariant: the result is a function of (params, logits, penalty window, mask, position) alone.
#pragma once

#include <cstdint>
#include <span>

#include "octet/base/function_ref.h"
#include "octet/base/token.h"
#include "octet/base/token_mask.h"
#include "octet/sampling/distribution.h"
#include "octet/sampling/penalty_window.h"
#include "octet/sampling/sampling_params.h"

namespace octet {

/// The greatest logit, the lowest id among equals; NaN never wins (0 when nothing does).
TokenId argmax(std::span<const float> logits);

class Sampler {
 public:
  /// Validates.
  Sampler(SamplingParams params, int64_t vocabulary);

  const SamplingParams& params() const { return params_; }
  bool greedy() const { return params_.greedy(); }
  /// Whether a token depends on nothing but the order of the logits.
  bool reads_order_alone() const {
    return greedy() && !params_.penalises() && params_.logit_bias.empty();
  }

  /// Steps 1 to 3, in place. A mask needs a column for every token.
  void adjust(std::span<float> logits, const PenaltyWindow& window, const TokenMask* mask = nullptr)
      const;
  /// Steps 1 and 2 on a row that covers some tokens only.
  void adjust(std::span<float> logits, const PenaltyWindow& window, TokenColumns columns) const;

  /// Steps 4 to 7 on adjusted logits. Only for temperature > 0. softcap and columns as in
  /// Distribution.
  Distribution distribution(
      std::span<const float> logits, float softcap = 0.0F, TokenColumns columns = {}
  ) const;

  NoiseField noise(int64_t position, NoisePurpose purpose) const;

  /// Steps 4 to 8: the token for `position`.
  TokenId choose(std::span<const float> logits, int64_t position, float softcap = 0.0F) const;

 private:
  SamplingParams params_;
};

}  // namespace octet
