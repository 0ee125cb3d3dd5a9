// Q5_1: 32 values share a half-precision scale and minimum. [f16 d][f16 m][u32 high][16 B codes]
//   q = nibble | (bit j of high) << 4,  y = q * d + m   (product and sum rounded separately)
// The five-bit form of Q4_1.
#pragma once

#include <array>
#include <span>

#include "octet/tensor/dtype.h"
#include "octet/tensor/quantize_search.h"
#include "octet/tensor/types/block_bytes.h"
#include "octet/tensor/types/encode_context.h"

namespace octet::types {

struct Q51 {
  static constexpr DType kDType = DType::kQ5_1;
  static constexpr DTypeFacts kFacts{"Q5_1", 7, 32, 24};

  static void decode(const std::byte* block, float* out) noexcept {
    const float d = load_f16(block);
    const float m = load_f16(block + 2);
    const uint32_t high = load_u32(block + 4);
    for_each_code<16>(block + 8, [&](int j, int nibble) {
      const int q = nibble | static_cast<int>(((high >> j) & 1U) << 4);
      out[j] = static_cast<float>(q) * d + m;
    });
  }

  static void encode(const float* values, const EncodeContext& context, std::byte* block) noexcept {
    const std::span<const float> group(values, 32);
    std::array<uint8_t, 32> codes{};
    AffineFit fit;
    if (context.importance != nullptr) {
      std::array<float, 32> weights{};
      importance_weights(group, context.importance, context.row_mean_square, weights.data());
      fit = search_affine(group, 31, weights.data(), kImportanceTrials, codes.data());
    } else {
      fit = spread_codes(group, 31, codes.data());
    }
    store_f16(block, fit.scale);
    store_f16(block + 2, -fit.minimum);
    store_u32(block + 4, fifth_bits(codes.data()));
    pack_codes<16>(codes.data(), block + 8);
  }

  static bool is_valid(const std::byte* block) noexcept {
    return is_finite_f16(block) && is_finite_f16(block + 2);
  }
};

}  // namespace octet::types
