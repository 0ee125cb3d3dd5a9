// Q4_0: 32 values share one half-precision scale. [f16 d][16 B codes]
//   y = (q - 8) * d
// The value of largest magnitude is hit exactly (code 0 is -8).
#pragma once

#include <array>
#include <span>

#include "octet/tensor/dtype.h"
#include "octet/tensor/quantize_search.h"
#include "octet/tensor/types/block_bytes.h"
#include "octet/tensor/types/encode_context.h"

namespace octet::types {

struct Q40 {
  static constexpr DType kDType = DType::kQ4_0;
  static constexpr DTypeFacts kFacts{"Q4_0", 2, 32, 18};

  static void decode(const std::byte* block, float* out) noexcept {
    const float d = load_f16(block);
    for_each_code<16>(block + 2, [&](int j, int q) { out[j] = static_cast<float>(q - 8) * d; });
  }

  static void encode(const float* values, const EncodeContext& context, std::byte* block) noexcept {
    const std::span<const float> group(values, 32);
    std::array<uint8_t, 32> codes{};
    float d = 0.0F;
    if (context.importance != nullptr) {
      std::array<float, 32> weights{};
      importance_weights(group, context.importance, context.row_mean_square, weights.data());
      d = search_symmetric(group, 8, weights.data(), codes.data());
    } else {
      d = largest_magnitude(group) / -8.0F;
      const float inverse = inverse_or_zero(d);
      for (size_t j = 0; j < codes.size(); ++j) {
        codes[j] = truncate_to_code(group[j] * inverse + 8.5F, 15);
      }
    }
    store_f16(block, d);
    pack_codes<16>(codes.data(), block + 2);
  }

  static bool is_valid(const std::byte* block) noexcept { return is_finite_f16(block); }
};

}  // namespace octet::types
