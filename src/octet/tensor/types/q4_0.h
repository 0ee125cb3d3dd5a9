// Q4_0: 32 values share one half-precision scale. [f16 d][16 B codes]
//   y = (q - 8) * d
// The value of largest magnitude is hit exactly (code 0 is -8).
#pragma once

#include "octet/tensor/dtype.h"
#include "octet/tensor/types/block_bytes.h"

namespace octet::types {

struct Q40 {
  static constexpr DType kDType = DType::kQ4_0;
  static constexpr DTypeFacts kFacts{"Q4_0", 2, 32, 18};

  static void decode(const std::byte* block, float* out) noexcept {
    const float d = load_f16(block);
    for_each_code<16>(block + 2, [&](int j, int q) { out[j] = static_cast<float>(q - 8) * d; });
  }

  static bool is_valid(const std::byte* block) noexcept { return is_finite_f16(block); }
};

}  // namespace octet::types
