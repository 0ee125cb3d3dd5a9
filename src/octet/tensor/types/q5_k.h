// Q5_K: Q4_K with a fifth bit. 176 bytes:
//   0 f16 d | 2 f16 dmin | 4 12 B group scales (k_scales.h) | 16 32 B high bits | 48 128 B codes
// Bit j of high byte l is bit 4 of element l of group j.
//   y = (d * scale) * q - (dmin * minimum)   (each product rounded)
#pragma once

#include "octet/tensor/dtype.h"
#include "octet/tensor/types/block_bytes.h"
#include "octet/tensor/types/k_affine_fit.h"
#include "octet/tensor/types/k_scales.h"

namespace octet::types {

struct Q5K {
  static constexpr DType kDType = DType::kQ5K;
  static constexpr DTypeFacts kFacts{"Q5_K", 13, 256, 176};

  static void decode(const std::byte* block, float* out) noexcept {
    const float d = load_f16(block);
    const float dmin = load_f16(block + 2);
    const std::byte* high = block + 16;
    for (int64_t group = 0; group < 8; ++group) {
      const GroupScale packed = unpack_group_scale(block + 4, group);
      const float scale = d * static_cast<float>(packed.scale);
      const float minimum = dmin * static_cast<float>(packed.minimum);
      const std::byte* codes = block + 48 + 32 * (group / 2);
      const int64_t shift = 4 * (group % 2);
      for (int64_t l = 0; l < 32; ++l) {
        const int low = (static_cast<int>(codes[l]) >> shift) & 15;
        const int q = low | (((static_cast<int>(high[l]) >> group) & 1) << 4);
        out[32 * group + l] = scale * static_cast<float>(q) - minimum;
      }
    }
  }

  static void encode(const float* values, const EncodeContext& context, std::byte* block) noexcept {
    const KAffineFit fit = fit_k_affine(values, context, 31, {-0.5F, 0.1F, 15});
    store_u16(block, fit.d);
    store_u16(block + 2, fit.dmin);
    pack_group_scales(fit.groups, block + 4);
    for (int64_t l = 0; l < 32; ++l) {
      int high = 0;
      for (int64_t group = 0; group < 8; ++group) {
        high |= (fit.codes[static_cast<size_t>(32 * group + l)] >> 4) << group;
      }
      block[16 + l] = static_cast<std::byte>(high);
    }
    for (int64_t pair = 0; pair < 4; ++pair) {
      pack_codes<32>(fit.codes.data() + 64 * pair, block + 48 + 32 * pair);
    }
  }

  static bool is_valid(const std::byte* block) noexcept {
    return is_finite_f16(block) && is_finite_f16(block + 2);
  }
};

}  // namespace octet::types
