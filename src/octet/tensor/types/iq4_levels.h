// The sixteen levels of IQ4_NL and IQ4_XS, and what encoding to them shares.
// The levels are dense around zero, where weights are, and wider towards the ends; part of the file
// format. Invariant: ascending.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "octet/tensor/quantize_search.h"
#include "octet/tensor/types/block_bytes.h"

namespace octet::types {

inline constexpr std::array<int8_t, 16> kIQ4Levels = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/// Weights of a group's search; without importance large values count more.
inline void iq4_weights(
    std::span<const float> group, const float* importance, float sigma2, float* weights
) noexcept {
  if (importance != nullptr) {
    importance_weights(group, importance, sigma2, weights);
    return;
  }
  std::transform(group.begin(), group.end(), weights, [](float x) { return x * x; });
}

/// Packs the nearest levels of 32 values times `inverse_scale` into 16 bytes.
inline void iq4_pack(
    std::span<const float> group, float inverse_scale, std::byte* packed
) noexcept {
  std::array<uint8_t, 32> codes{};
  std::transform(group.begin(), group.end(), codes.begin(), [&](float x) {
    return static_cast<uint8_t>(nearest_level(kIQ4Levels, inverse_scale * x));
  });
  pack_codes<16>(codes.data(), packed);
}

}  // namespace octet::types
