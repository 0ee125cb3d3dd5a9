#include "octet/sampling/token_scores.h"

#include <algorithm>
#include <cmath>

#include "octet/base/check.h"
#include "octet/sampling/top_k.h"

namespace octet {

RowScores::RowScores(std::span<const float> logits, int64_t best)
    : logits_(logits.begin(), logits.end()) {
  OCTET_CHECK(best >= 0);
  const auto greatest = static_cast<double>(greatest_logit(logits));
  double sum = 0.0;
  for (const float logit : logits) {
    sum += std::exp(static_cast<double>(logit) - greatest);
  }
  log_sum_ = greatest + std::log(sum);
  if (best > 0) {
    for (const Candidate& candidate : top_k_candidates(logits, best)) {
      best_.push_back({candidate.token, of(candidate.token).chosen});
    }
  }
}

TokenScores RowScores::of(TokenId token) const {
  const auto logit = static_cast<double>(logits_[static_cast<size_t>(token)]);
  return {static_cast<float>(logit - log_sum_), best_};
}

}  // namespace octet
