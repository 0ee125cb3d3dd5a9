// Q4_1: 32 values share a half-precision scale and minimum. [f16 d][f16 m][16 B codes]
//   y = q * d + m   (product and sum rounded separately)
// Uses all sixteen codes for one-sided data, where Q4_0 wastes half of them.
#pragma once

#include <array>
#include <span>

#include "octet/tensor/dtype.h"
#include "octet/tensor/quantize_search.h"
#include "octet/tensor/types/block_bytes.h"
#include "octet/tensor/types/encode_context.h"

namespace octet::types {

struct Q41 {
  static constexpr DType kDType = DType::kQ4_1;
  static constexpr DTypeFacts kFacts{"Q4_1", 3, 32, 20};

  static void decode(const std::byte* block, float* out) noexcept {
    const float d = load_f16(block);
    const float m = load_f16(block + 2);
    for_each_code<16>(block + 4, [&](int j, int q) { out[j] = static_cast<float>(q) * d + m; });
  }

  static void encode(const float* values, const EncodeContext& context, std::byte* block) noexcept {
    const std::span<const float> group(values, 32);
    std::array<uint8_t, 32> codes{};
    AffineFit fit;
    if (context.importance != nullptr) {
      std::array<float, 32> weights{};
      importance_weights(group, context.importance, context.row_mean_square, weights.data());
      fit = search_affine(group, 15, weights.data(), kImportanceTrials, codes.data());
    } else {
      fit = spread_codes(group, 15, codes.data());
    }
    store_f16(block, fit.scale);
    store_f16(block + 2, -fit.minimum);
    pack_codes<16>(codes.data(), block + 4);
  }

  static bool is_valid(const std::byte* block) noexcept {
    return is_finite_f16(block) && is_finite_f16(block + 2);
  }
};

}  // namespace octet::types
