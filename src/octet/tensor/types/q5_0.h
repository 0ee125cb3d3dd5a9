// Q5_0: 32 values share one half-precision scale; the fifth bits lie apart. [f16 d][u32 high][16 B
// codes]
//   q = nibble | (bit j of high) << 4,  y = (q - 16) * d
// The value of largest magnitude is hit exactly (code 0 is -16).
#pragma once

#include <array>
#include <span>

#include "octet/tensor/dtype.h"
#include "octet/tensor/quantize_search.h"
#include "octet/tensor/types/block_bytes.h"
#include "octet/tensor/types/encode_context.h"

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

  static void encode(const float* values, const EncodeContext& context, std::byte* block) noexcept {
    const std::span<const float> group(values, 32);
    std::array<uint8_t, 32> codes{};
    float d = 0.0F;
    if (context.importance != nullptr) {
      std::array<float, 32> weights{};
      importance_weights(group, context.importance, context.row_mean_square, weights.data());
      d = search_symmetric(group, 16, weights.data(), codes.data());
    } else {
      d = largest_magnitude(group) / -16.0F;
      const float inverse = inverse_or_zero(d);
      for (size_t j = 0; j < codes.size(); ++j) {
        codes[j] = truncate_to_code(group[j] * inverse + 16.5F, 31);
      }
    }
    store_f16(block, d);
    store_u32(block + 2, fifth_bits(codes.data()));
    pack_codes<16>(codes.data(), block + 6);
  }

  static bool is_valid(const std::byte* block) noexcept { return is_finite_f16(block); }
};

}  // namespace octet::types
