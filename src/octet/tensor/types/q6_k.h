// Q6_K: 256 values in sixteen groups of 16, each with a signed 8-bit scale. 210 bytes:
//   0 128 B low nibbles | 128 64 B upper bit pairs | 192 16 x i8 scales | 208 f16 d
// Element e = 128 half + 32 quarter + l: nibble of low[64 half + 32 (quarter % 2) + l] (high nibble
// for quarters 2 and 3), upper bits (upper[32 half + l] >> 2 quarter) & 3.
//   y = (d * scale) * (q - 32)   (each product rounded)
#pragma once

#include "octet/tensor/dtype.h"
#include "octet/tensor/types/block_bytes.h"

namespace octet::types {

struct Q6K {
  static constexpr DType kDType = DType::kQ6K;
  static constexpr DTypeFacts kFacts{"Q6_K", 14, 256, 210};

  static void decode(const std::byte* block, float* out) noexcept {
    const float d = load_f16(block + 208);
    for (int half = 0; half < 2; ++half) {
      for (int quarter = 0; quarter < 4; ++quarter) {
        const std::byte* low = block + 64 * half + 32 * (quarter % 2);
        const std::byte* upper = block + 128 + 32 * half;
        const int first = 128 * half + 32 * quarter;
        const int shift = 4 * (quarter / 2);
        for (int l = 0; l < 32; ++l) {
          const int code = ((static_cast<int>(low[l]) >> shift) & 15) |
                           (((static_cast<int>(upper[l]) >> (2 * quarter)) & 3) << 4);
          const auto scale = static_cast<int8_t>(block[192 + (first + l) / 16]);
          out[first + l] = (d * static_cast<float>(scale)) * static_cast<float>(code - 32);
        }
      }
    }
  }

  static bool is_valid(const std::byte* block) noexcept { return is_finite_f16(block + 208); }
};

}  // namespace octet::types
