// The final distribution of one position: what is left of a row of logits after temperature, top-k,
// top-p and min-p, in that order. It is what the next token is drawn from, what the ratio rule
// calls p and q, and nothing else. Two forms: sparse (candidates, best first) and whole (the row
// itself, with a floor from min-p), so that plain temperature sampling never sorts a vocabulary.
// Invariant: never empty; candidates are ordered by logit, equal logits by id, lowest first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "octet/base/token.h"
#include "octet/sampling/noise.h"
#include "octet/sampling/sampling_params.h"
#include "octet/sampling/token_columns.h"
#include "octet/sampling/top_k.h"

namespace octet {

class Distribution {
 public:
  /// From a row of logits, already adjusted. Logits that are NaN or minus infinity have probability
  /// 0. softcap > 0: the logits are softcap * tanh(l / softcap) of those given (drafts; the
  /// target's are capped already). The row must outlive the distribution in its whole form;
  /// temperature > 0. columns: the tokens that the row covers; all others have probability 0.
  Distribution(
      std::span<const float> logits,
      const SamplingParams& params,
      float softcap = 0.0F,
      TokenColumns columns = {}
  );

  bool whole() const { return whole_; }
  std::span<const Candidate> candidates() const { return candidates_; }  // sparse form

  /// The token whose arrival time over probability is least under `noise`: exactly one draw. Ties:
  /// lowest id.
  TokenId draw(const NoiseField& noise) const;

  /// Probability of `token`; sums to 1 over the vocabulary.
  double probability(TokenId token) const;

  /// Probability of the likeliest token, how sure the distribution is. In the whole form a slight
  /// overestimate: only the best thousand tokens are counted.
  double greatest_probability() const;

  /// Draws from max(p - q, 0), normalised, where p is this distribution; from p when that is zero
  /// everywhere.
  TokenId draw_residual(const Distribution& q, const NoiseField& noise) const;

 private:
  double scaled(float logit) const;              // soft-capped, over temperature
  bool inside(float logit) const;                // whole form: above the floor of min-p
  double log_sum() const;                        // of exp(scaled logit) over the support
  std::vector<Candidate> best(int64_t k) const;  // of the row
  void keep_top_p(double top_p);
  void keep_min_p(double min_p);
  TokenId draw_sparse(const NoiseField& noise) const;
  TokenId draw_whole(const NoiseField& noise) const;

  std::span<const float> logits_;  // by column
  TokenColumns columns_;
  std::vector<Candidate> candidates_;
  bool whole_ = false;
  double greatest_ = 0.0;  // scaled
  double floor_ = 0.0;     // whole form: scaled logits below it are out
  double temperature_ = 1.0;
  double softcap_ = 0.0;
  mutable double log_sum_ = 0.0;  // computed on first use: a draw does not need it
  mutable bool summed_ = false;
};

}  // namespace octet
