// Log-probabilities of one position as a caller asks for them: of the chosen token and of the
// likeliest ones. They are the model's own, from its logits before penalties, bias, mask,
// temperature and cuts, so they say what the model thinks and not how it was sampled. Invariant:
// `best` is ordered by probability, equal ones by id, lowest first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "octet/base/token.h"

namespace octet {

struct ScoredToken {
  TokenId token = 0;
  float log_probability = 0.0F;
};

struct TokenScores {
  float chosen = 0.0F;            // log-probability of the token that was published
  std::vector<ScoredToken> best;  // as many as were asked for
};

/// One row before anything adjusts it. Give it the token once it is known.
class RowScores {
 public:
  /// logits [vocabulary], soft-capped; keeps a copy. best >= 0.
  RowScores(std::span<const float> logits, int64_t best);
  TokenScores of(TokenId token) const;

 private:
  std::vector<float> logits_;
  double log_sum_ = 0.0;
  std::vector<ScoredToken> best_;
};

}  // namespace octet
