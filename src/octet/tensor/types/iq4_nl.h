// IQ4_NL: 32 values share one half-precision scale over sixteen unevenly spaced levels. [f16 d][16
// B codes]
//   y = d * level[q]   (levels in iq4_levels.h)
// Better than Q4_0 at the same size.
#pragma once

#include <array>
#include <span>

#include "octet/tensor/dtype.h"
#include "octet/tensor/quantize_search.h"
#include "octet/tensor/types/block_bytes.h"
#include "octet/tensor/types/encode_context.h"
#include "octet/tensor/types/iq4_levels.h"

namespace octet::types {

struct IQ4NL {
  static constexpr DType kDType = DType::kIQ4NL;
  static constexpr DTypeFacts kFacts{"IQ4_NL", 20, 32, 18};

  static void decode(const std::byte* block, float* out) noexcept {
    const float d = load_f16(block);
    for_each_code<16>(block + 2, [&](int j, int q) {
      out[j] = d * static_cast<float>(kIQ4Levels[q]);
    });
  }

  static void encode(const float* values, const EncodeContext& context, std::byte* block) noexcept {
    const std::span<const float> group(values, 32);
    std::array<float, 32> weights{};
    const float sigma2 = sum_of_squares(group) * (2.0F / 32.0F);
    iq4_weights(group, context.importance, sigma2, weights.data());
    const float d = search_levels(group, kIQ4Levels, weights.data());
    store_f16(block, d);
    iq4_pack(group, inverse_or_zero(d), block + 2);
  }

  static bool is_valid(const std::byte* block) noexcept { return is_finite_f16(block); }
};

}  // namespace octet::types
