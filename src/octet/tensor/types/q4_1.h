// Q4_1: 32 values share a half-precision scale and minimum. [f16 d][f16 m][16 B codes]
//   y = q * d + m   (product and sum rounded separately)
// Uses all sixteen codes for one-sided data, where Q4_0 wastes half of them.
#pragma once

#include "octet/tensor/dtype.h"
#include "octet/tensor/types/block_bytes.h"

namespace octet::types {

struct Q41 {
  static constexpr DType kDType = DType::kQ4_1;
  static constexpr DTypeFacts kFacts{"Q4_1", 3, 32, 20};

  static void decode(const std::byte* block, float* out) noexcept {
    const float d = load_f16(block);
    const float m = load_f16(block + 2);
    for_each_code<16>(block + 4, [&](int j, int q) { out[j] = static_cast<float>(q) * d + m; });
  }

  static bool is_valid(const std::byte* block) noexcept {
    return is_finite_f16(block) && is_finite_f16(block + 2);
  }
};

}  // namespace octet::types
