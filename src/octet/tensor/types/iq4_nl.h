// IQ4_NL: 32 values share one half-precision scale over sixteen unevenly spaced levels. [f16 d][16
// B codes]
//   y = d * level[q]   (levels in iq4_values.h)
// Better than Q4_0 at the same size.
#pragma once

#include "octet/tensor/dtype.h"
#include "octet/tensor/types/block_bytes.h"
#include "octet/tensor/types/iq4_values.h"

namespace octet::types {

struct IQ4NL {
  static constexpr DType kDType = DType::kIQ4NL;
  static constexpr DTypeFacts kFacts{"IQ4_NL", 20, 32, 18};

  static void decode(const std::byte* block, float* out) noexcept {
    const float d = load_f16(block);
    for_each_code<16>(block + 2, [&](int j, int q) {
      out[j] = d * static_cast<float>(kIQ4Values[q]);
    });
  }

  static bool is_valid(const std::byte* block) noexcept { return is_finite_f16(block); }
};

}  // namespace octet::types
