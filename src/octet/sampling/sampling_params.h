// How one request wants its tokens chosen. A plain value; nothing here knows of drafting, because
// drafting never changes what is chosen. The order of the steps is that of sampler.h. Invariant:
// after validate() every number is finite and inside the range stated beside it.
#pragma once

#include <cstdint>
#include <vector>

#include "octet/base/token.h"

namespace octet {

/// Which tokens the penalties count.
enum class PenaltyScope : uint8_t {
  kReply,           // tokens generated for this request
  kPromptAndReply,  // the prompt too
};

struct TokenBias {
  TokenId token = 0;
  float bias = 0.0F;
};

/// A bias of this value or lower forbids the token outright.
inline constexpr float kBanBias = -100.0F;

struct SamplingParams {
  float temperature = 0.0F;  // [0, 100]; 0: greedy, the lowest id among equal maxima
  int64_t top_k = 0;         // >= 0; 0: all tokens
  float top_p = 1.0F;        // (0, 1]; 1: all tokens
  float min_p = 0.0F;        // [0, 1); 0: all tokens

  float repetition_penalty =
      1.0F;  // (0, 10]; divides positive and multiplies negative logits of seen tokens
  float presence_penalty = 0.0F;   // [-10, 10]; subtracted once from seen tokens
  float frequency_penalty = 0.0F;  // [-10, 10]; subtracted for every occurrence
  PenaltyScope penalty_scope = PenaltyScope::kReply;
  int64_t penalty_last_n =
      0;  // >= 0; only the last so many tokens of the scope; 0: the whole scope

  std::vector<TokenBias>
      logit_bias;  // at most kMaxLogitBiases, each in [-100, 100]; -100 forbids the token
  uint64_t seed = 0;

  bool greedy() const { return temperature == 0.0F; }
  bool penalises() const {
    return repetition_penalty != 1.0F || presence_penalty != 0.0F || frequency_penalty != 0.0F;
  }

  /// Throws Error(kInvalidArgument) that names the field, its value and the allowed range.
  /// `vocabulary` bounds the ids of logit_bias.
  void validate(int64_t vocabulary) const;
};

inline constexpr int64_t kMaxLogitBiases = 4096;

}  // namespace octet
