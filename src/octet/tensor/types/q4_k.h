// Q4_K: 256 values in eight groups of 32, each with a 6-bit scale and minimum. 144 bytes:
//   0 f16 d | 2 f16 dmin | 4 12 B group scales (k_scales.h) | 16 128 B codes
// Groups 2g and 2g+1 share bytes 32g..32g+31 of the codes: low nibbles, high nibbles.
//   y = (d * scale) * q - (dmin * minimum)   (each product rounded)
#pragma once

#include "octet/tensor/dtype.h"
#include "octet/tensor/types/block_bytes.h"
#include "octet/tensor/types/k_affine_fit.h"
#include "octet/tensor/types/k_scales.h"

namespace octet::types {

struct Q4K {
  static constexpr DType kDType = DType::kQ4K;
  static constexpr DTypeFacts kFacts{"Q4_K", 12, 256, 144};

  static void decode(const std::byte* block, float* out) noexcept {
    const float d = load_f16(block);
    const float dmin = load_f16(block + 2);
    for (int64_t group = 0; group < 8; ++group) {
      const GroupScale packed = unpack_group_scale(block + 4, group);
      const float scale = d * static_cast<float>(packed.scale);
      const float minimum = dmin * static_cast<float>(packed.minimum);
      const std::byte* codes = block + 16 + 32 * (group / 2);
      const int64_t shift = 4 * (group % 2);
      for (int64_t l = 0; l < 32; ++l) {
        const int q = (static_cast<int>(codes[l]) >> shift) & 15;
        out[32 * group + l] = scale * static_cast<float>(q) - minimum;
      }
    }
  }

  static void encode(const float* values, const EncodeContext& context, std::byte* block) noexcept {
    const KAffineFit fit = fit_k_affine(values, context, 15, {-1.0F, 0.1F, 20});
    store_u16(block, fit.d);
    store_u16(block + 2, fit.dmin);
    pack_group_scales(fit.groups, block + 4);
    for (int64_t pair = 0; pair < 4; ++pair) {
      pack_codes<32>(fit.codes.data() + 64 * pair, block + 16 + 32 * pair);
    }
  }

  static bool is_valid(const std::byte* block) noexcept {
    return is_finite_f16(block) && is_finite_f16(block + 2);
  }
};

}  // namespace octet::types
