#include "octet/tensor/types/k_affine_fit.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "octet/tensor/lane_search.h"

namespace octet::types {

namespace {

constexpr size_t kGroups = kAffineGroups;
constexpr size_t kGroupValues = 32;
constexpr int kMaxGroupScale = 63;

using PerGroup = std::array<float, kGroups>;

/// One 6-bit quantity of the groups (scales or minimums) and its common scale.
struct QuantizedScales {
  float step = 0.0F;
  std::array<uint8_t, kGroups> codes{};
};

QuantizedScales round_scales(const PerGroup& scales) {
  const float largest = std::max(0.0F, *std::max_element(scales.begin(), scales.end()));
  QuantizedScales result;
  result.step = largest / static_cast<float>(kMaxGroupScale);
  const float inverse = largest > 0.0F ? static_cast<float>(kMaxGroupScale) / largest : 0.0F;
  for (size_t j = 0; j < kGroups; ++j) {
    const int code = round_to_even(inverse * scales[j]);
    result.codes[j] = static_cast<uint8_t>(std::clamp(code, 0, kMaxGroupScale));
  }
  return result;
}

QuantizedScales search_scales(const PerGroup& scales, const PerGroup& weights) {
  QuantizedScales result;
  result.step = search_nonnegative(scales, kMaxGroupScale, weights.data(), result.codes.data());
  return result;
}

/// Codes for what the rounded scales will decode to; groups of scale zero keep the codes of the
/// search.
void refit_codes(const float* values, int max_code, KAffineFit* fit) {
  const float d = f16_to_f32(fit->d);
  const float dmin = f16_to_f32(fit->dmin);
  for (size_t j = 0; j < kGroups; ++j) {
    const float scale = d * static_cast<float>(fit->groups[j].scale);
    if (scale == 0.0F) {
      continue;
    }
    const float minimum = dmin * static_cast<float>(fit->groups[j].minimum);
    for (size_t i = kGroupValues * j; i < kGroupValues * (j + 1); ++i) {
      const int code = round_to_even((values[i] + minimum) / scale);
      fit->codes[i] = static_cast<uint8_t>(std::clamp(code, 0, max_code));
    }
  }
}

}  // namespace

KAffineFit fit_k_affine(
    const float* values, const EncodeContext& context, int max_code, const AffineTrials& trials
) noexcept {
  const bool weighted = context.importance != nullptr;
  const float block_sigma2 = weighted ? 2.0F * sum_of_squares({values, 256}) / 256.0F : 0.0F;
  KAffineFit fit;
  PerGroup scales{};
  PerGroup minimums{};
  PerGroup group_weights{};
  std::array<float, kGroups * kGroupValues> weights{};
  for (size_t j = 0; j < kGroups; ++j) {
    const std::span<const float> group(values + kGroupValues * j, kGroupValues);
    const std::span<float> own = std::span(weights).subspan(kGroupValues * j, kGroupValues);
    if (weighted) {
      const float* importance = context.importance + kGroupValues * j;
      importance_weights(group, importance, block_sigma2, own.data());
    } else {
      const float root_mean_square = std::sqrt(sum_of_squares(group) / 32.0F);
      std::transform(group.begin(), group.end(), own.begin(), [&](float x) {
        return root_mean_square + std::fabs(x);
      });
    }
    for (const float w : own) {
      group_weights[j] += w;
    }
  }
  std::array<AffineFit, kGroups> found;
  lane_search().affine(
      values,
      max_code,
      weights.data(),
      weighted ? kImportanceTrials : trials,
      found.data(),
      fit.codes.data()
  );
  for (size_t j = 0; j < kGroups; ++j) {
    scales[j] = found[j].scale;
    minimums[j] = found[j].minimum;
  }
  const QuantizedScales scale =
      weighted ? search_scales(scales, group_weights) : round_scales(scales);
  const QuantizedScales minimum =
      weighted ? search_scales(minimums, group_weights) : round_scales(minimums);
  fit.d = f32_to_f16(scale.step);
  fit.dmin = f32_to_f16(minimum.step);
  for (size_t j = 0; j < kGroups; ++j) {
    fit.groups[j] = {scale.codes[j], minimum.codes[j]};
  }
  refit_codes(values, max_code, &fit);
  return fit;
}

}  // namespace octet::types
