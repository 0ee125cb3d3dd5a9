// IQ4_XS: 256 values in eight groups of 32 with 6-bit scales over IQ4_NL's levels. 136 bytes:
//   0 f16 d | 2 u16 upper scale bits | 4 4 B low scale bits | 8 128 B codes
// Scale of group k: low nibble from byte k/2 (even k: low nibble), upper two bits from (u16 >> 2k)
// & 3.
//   y = (d * (scale - 32)) * level[q]   (each product rounded)
#pragma once

#include "octet/tensor/dtype.h"
#include "octet/tensor/types/block_bytes.h"
#include "octet/tensor/types/iq4_values.h"

namespace octet::types {

struct IQ4XS {
  static constexpr DType kDType = DType::kIQ4XS;
  static constexpr DTypeFacts kFacts{"IQ4_XS", 23, 256, 136};

  static void decode(const std::byte* block, float* out) noexcept {
    const float d = load_f16(block);
    for (int group = 0; group < 8; ++group) {
      const float scale = d * static_cast<float>(group_scale(block, group));
      for_each_code<16>(block + 8 + 16 * group, [&](int j, int q) {
        out[32 * group + j] = scale * static_cast<float>(kIQ4Values[q]);
      });
    }
  }

  /// -32..31
  static int group_scale(const std::byte* block, int group) noexcept {
    const int low = (static_cast<int>(block[4 + group / 2]) >> (4 * (group % 2))) & 15;
    const int upper = (load_u16(block + 2) >> (2 * group)) & 3;
    return (low | (upper << 4)) - 32;
  }

  static bool is_valid(const std::byte* block) noexcept { return is_finite_f16(block); }
};

}  // namespace octet::types
