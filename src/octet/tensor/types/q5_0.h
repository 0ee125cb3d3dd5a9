// Q5_0: 32 values share one half-precision scale; the fifth bits lie apart. [f16 d][u32 high][16 B
// codes]
//   q = nibble | (bit j of high) << 4,  y = (q - 16) * d
// The value of largest magnitude is hit exactly (code 0 is -16).
#pragma once

#include "octet/tensor/dtype.h"
#include "octet/tensor/types/block_bytes.h"

namespace octet::types {

struct Q50 {
  static constexpr DType kDType = DType::kQ5_0;
  static constexpr DTypeFacts kFacts{"Q5_0", 6, 32, 22};

  static void decode(const std::byte* block, float* out) noexcept {
    const float d = load_f16(block);
    const uint32_t high = load_u32(block + 2);
    for_each_code<16>(block + 6, [&](int j, int nibble) {
      const int q = nibble | static_cast<int>(((high >> j) & 1U) << 4);
      out[j] = static_cast<float>(q - 16) * d;
    });
  }

  static bool is_valid(const std::byte* block) noexcept { return is_finite_f16(block); }
};

}  // namespace octet::types
