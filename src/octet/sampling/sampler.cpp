#include "octet/sampling/sampler.h"

#include <limits>
#include <utility>

namespace octet {

TokenId argmax(std::span<const float> logits) {
  const float best = greatest_logit(logits);
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] == best) {
      return static_cast<TokenId>(i);
    }
  }
  return 0;
}

Sampler::Sampler(SamplingParams params, int64_t vocabulary) : params_(std::move(params)) {
  params_.validate(vocabulary);
}

void Sampler::adjust(std::span<float> logits, const PenaltyWindow& window, const TokenMask* mask)
    const {
  adjust(logits, window, TokenColumns());
  if (mask != nullptr) {
    mask->apply(logits);
  }
}

void Sampler::adjust(std::span<float> logits, const PenaltyWindow& window, TokenColumns columns)
    const {
  window.apply(logits, columns);
  for (const TokenBias& entry : params_.logit_bias) {
    const int64_t column = columns.column(entry.token);
    if (column >= 0) {
      float& logit = logits[static_cast<size_t>(column)];
      logit = entry.bias <= kBanBias ? -std::numeric_limits<float>::infinity() : logit + entry.bias;
    }
  }
}

Distribution Sampler::distribution(
    std::span<const float> logits, float softcap, TokenColumns columns
) const {
  return {logits, params_, softcap, columns};
}

NoiseField Sampler::noise(int64_t position, NoisePurpose purpose) const {
  return {params_.seed, position, purpose};
}

TokenId Sampler::choose(std::span<const float> logits, int64_t position, float softcap) const {
  if (greedy()) {
    return argmax(logits);
  }
  return distribution(logits, softcap).draw(noise(position, NoisePurpose::kToken));
}

}  // namespace octet
