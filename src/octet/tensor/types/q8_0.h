// Q8_0: 32 values share one half-precision scale. [f16 d][32 x i8 q]
//   y = q * d
// Nearly lossless at 8.5 bits a value.
#pragma once

#include <cmath>

#include "octet/tensor/dtype.h"
#include "octet/tensor/quantize_search.h"
#include "octet/tensor/types/block_bytes.h"
#include "octet/tensor/types/encode_context.h"

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

  static void encode(const float* values, const EncodeContext&, std::byte* block) noexcept {
    const float d = std::fabs(largest_magnitude({values, 32})) / 127.0F;
    const float inverse = inverse_or_zero(d);
    store_f16(block, d);
    for (int j = 0; j < 32; ++j) {
      const auto q = static_cast<int8_t>(std::round(values[j] * inverse));  // ties away from zero
      block[2 + j] = static_cast<std::byte>(q);
    }
  }

  static bool is_valid(const std::byte* block) noexcept { return is_finite_f16(block); }
};

}  // namespace octet::types
