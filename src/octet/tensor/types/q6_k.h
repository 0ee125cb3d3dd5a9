// Q6_K: 256 values in sixteen groups of 16, each with a signed 8-bit scale. 210 bytes:
//   0 128 B low nibbles | 128 64 B upper bit pairs | 192 16 x i8 scales | 208 f16 d
// Element e = 128 half + 32 quarter + l: nibble of low[64 half + 32 (quarter % 2) + l] (high nibble
// for quarters 2 and 3), upper bits (upper[32 half + l] >> 2 quarter) & 3.
//   y = (d * scale) * (q - 32)   (each product rounded)
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "octet/tensor/dtype.h"
#include "octet/tensor/lane_search.h"
#include "octet/tensor/quantize_search.h"
#include "octet/tensor/types/block_bytes.h"
#include "octet/tensor/types/encode_context.h"

namespace octet::types {

struct Q6K {
  static constexpr DType kDType = DType::kQ6K;
  static constexpr DTypeFacts kFacts{"Q6_K", 14, 256, 210};

  static void decode(const std::byte* block, float* out) noexcept {
    const float d = load_f16(block + 208);
    for (int64_t half = 0; half < 2; ++half) {
      for (int64_t quarter = 0; quarter < 4; ++quarter) {
        const std::byte* low = block + 64 * half + 32 * (quarter % 2);
        const std::byte* upper = block + 128 + 32 * half;
        const int64_t first = 128 * half + 32 * quarter;
        const int64_t shift = 4 * (quarter / 2);
        for (int64_t l = 0; l < 32; ++l) {
          const int code = ((static_cast<int>(low[l]) >> shift) & 15) |
                           (((static_cast<int>(upper[l]) >> (2 * quarter)) & 3) << 4);
          const auto scale = static_cast<int8_t>(block[192 + (first + l) / 16]);
          out[first + l] = (d * static_cast<float>(scale)) * static_cast<float>(code - 32);
        }
      }
    }
  }

  static void encode(const float* values, const EncodeContext& context, std::byte* block) noexcept {
    std::array<uint8_t, 256> codes{};
    std::array<float, 16> scales{};
    lane_search().symmetric(values, 32, context.importance, scales.data(), codes.data());
    const float largest = largest_magnitude(scales);
    if (std::fabs(largest) < kGroupEpsilon) {
      std::memset(block, 0, kFacts.block_bytes);
      return;
    }
    const float inverse = -128.0F / largest;
    store_f16(block + 208, 1.0F / inverse);
    for (size_t group = 0; group < scales.size(); ++group) {
      const int scale = std::clamp(round_to_even(inverse * scales[group]), -128, 127);
      block[192 + group] = static_cast<std::byte>(scale);
      refit(
          values + 16 * group, load_f16(block + 208) * static_cast<float>(scale), &codes[16 * group]
      );
    }
    pack(codes, block);
  }

  static bool is_valid(const std::byte* block) noexcept { return is_finite_f16(block + 208); }

 private:
  /// Codes for the scale as it will be decoded; a group of scale zero keeps the codes of the
  /// search.
  static void refit(const float* values, float scale, uint8_t* codes) noexcept {
    if (scale == 0.0F) {
      return;
    }
    for (int l = 0; l < 16; ++l) {
      codes[l] = static_cast<uint8_t>(std::clamp(round_to_even(values[l] / scale), -32, 31) + 32);
    }
  }

  static void pack(const std::array<uint8_t, 256>& codes, std::byte* block) noexcept {
    for (int64_t half = 0; half < 2; ++half) {
      const uint8_t* c = codes.data() + 128 * half;
      for (int64_t l = 0; l < 32; ++l) {
        const int upper = (c[l] >> 4) | ((c[l + 32] >> 4) << 2) | ((c[l + 64] >> 4) << 4) |
                          ((c[l + 96] >> 4) << 6);
        block[128 + 32 * half + l] = static_cast<std::byte>(upper);
      }
      pack_codes<64>(c, block + 64 * half);
    }
  }
};

}  // namespace octet::types
