// IQ4_XS: 256 values in eight groups of 32 with 6-bit scales over IQ4_NL's levels. 136 bytes:
//   0 f16 d | 2 u16 upper scale bits | 4 4 B low scale bits | 8 128 B codes
// Scale of group k: low nibble from byte k/2 (even k: low nibble), upper two bits from (u16 >> 2k)
// & 3.
//   y = (d * (scale - 32)) * level[q]   (each product rounded)
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "octet/tensor/dtype.h"
#include "octet/tensor/quantize_search.h"
#include "octet/tensor/types/block_bytes.h"
#include "octet/tensor/types/encode_context.h"
#include "octet/tensor/types/iq4_levels.h"

namespace octet::types {

struct IQ4XS {
  static constexpr DType kDType = DType::kIQ4XS;
  static constexpr DTypeFacts kFacts{"IQ4_XS", 23, 256, 136};

  static void decode(const std::byte* block, float* out) noexcept {
    const float d = load_f16(block);
    for (int64_t group = 0; group < 8; ++group) {
      const float scale = d * static_cast<float>(group_scale(block, group));
      for_each_code<16>(block + 8 + 16 * group, [&](int j, int q) {
        out[32 * group + j] = scale * static_cast<float>(kIQ4Levels[q]);
      });
    }
  }

  /// -32..31
  static int group_scale(const std::byte* block, int64_t group) noexcept {
    const int low = (static_cast<int>(block[4 + group / 2]) >> (4 * (group % 2))) & 15;
    const int upper = (load_u16(block + 2) >> (2 * group)) & 3;
    return (low | (upper << 4)) - 32;
  }

  /// The inverse of group_scale, for all groups.
  static void set_group_scales(const std::array<int8_t, 8>& scales, std::byte* block) noexcept {
    uint32_t low = 0;
    uint32_t upper = 0;
    for (size_t group = 0; group < scales.size(); ++group) {
      const auto stored = static_cast<uint32_t>(scales[group] + 32);
      low |= (stored & 15U) << (4 * group);
      upper |= (stored >> 4) << (2 * group);
    }
    store_u16(block + 2, static_cast<uint16_t>(upper));
    store_u32(block + 4, low);
  }

  static void encode(const float* values, const EncodeContext& context, std::byte* block) noexcept {
    const float sigma2 = sum_of_squares({values, 256}) * (2.0F / 256.0F);
    std::array<float, 8> scales{};
    for (size_t group = 0; group < scales.size(); ++group) {
      const float* importance = context.importance;
      const std::span<const float> members(values + 32 * group, 32);
      std::array<float, 32> weights{};
      iq4_weights(
          members, importance == nullptr ? nullptr : importance + 32 * group, sigma2, weights.data()
      );
      scales[group] = search_levels(members, kIQ4Levels, weights.data());
    }
    const float d = -largest_magnitude(scales) / 32.0F;
    const float inverse = inverse_or_zero(d);
    std::array<int8_t, 8> rounded{};
    for (size_t group = 0; group < scales.size(); ++group) {
      const int scale = std::clamp(round_to_even(inverse * scales[group]), -32, 31);
      rounded[group] = static_cast<int8_t>(scale);
      const float group_inverse = inverse_or_zero(d * static_cast<float>(scale));
      iq4_pack({values + 32 * group, 32}, group_inverse, block + 8 + 16 * group);
    }
    store_f16(block, d);
    set_group_scales(rounded, block);
  }

  static bool is_valid(const std::byte* block) noexcept { return is_finite_f16(block); }
};

}  // namespace octet::types
