// Q8_0: 32 values share one half-precision scale. [f16 d][32 x i8 q]
//   y = q * d
// Nearly lossless at 8.5 bits a value.
#pragma once

#include "octet/tensor/dtype.h"
#include "octet/tensor/types/block_bytes.h"

namespace octet::types {

struct Q80 {
  static constexpr DType kDType = DType::kQ8_0;
  static constexpr DTypeFacts kFacts{"Q8_0", 8, 32, 34};

  static void decode(const std::byte* block, float* out) noexcept {
    const float d = load_f16(block);
    for (int j = 0; j < 32; ++j) {
      out[j] = static_cast<float>(static_cast<int8_t>(block[2 + j])) * d;
    }
  }

  static bool is_valid(const std::byte* block) noexcept { return is_finite_f16(block); }
};

}  // namespace octet::types
