// NVFP4 in ggml's layout: 64 values in four groups of 16, each with an unsigned E4M3 scale. [4 x u8
// d][32 B codes] Group s uses scale s and bytes 8s..8s+7; within a group the usual order of
// nibbles.
//   y = e4m3(d & 0x7F) * E2M1[q];  0x7F decodes to 0
// The global scale of the tensor is LogicalTensor::scale and not applied here.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "octet/tensor/dtype.h"
#include "octet/tensor/quantize_search.h"
#include "octet/tensor/types/block_bytes.h"
#include "octet/tensor/types/encode_context.h"

namespace octet::types {

struct NVFP4 {
  static constexpr DType kDType = DType::kNVFP4;
  static constexpr DTypeFacts kFacts{"NVFP4", 40, 64, 36};

  static void decode(const std::byte* block, float* out) noexcept {
    for (int64_t group = 0; group < 4; ++group) {
      const float scale = decode_scale(load_u8(block + group));
      for_each_code<8>(block + 4 + 8 * group, [&](int j, int q) {
        out[16 * group + j] = scale * kE2M1Values[q];
      });
    }
  }

  static float decode_scale(uint8_t byte) noexcept {
    const uint8_t code = byte & 0x7FU;
    return code == 0x7FU ? 0.0F : e4m3_to_f32(code);
  }

  /// There is no global scale: amax / 6 of each group must fit E4M3.
  static void encode(const float* values, const EncodeContext&, std::byte* block) noexcept {
    for (int64_t group = 0; group < 4; ++group) {
      const float* members = values + 16 * group;
      const float largest = std::fabs(largest_magnitude({members, 16}));
      const uint8_t scale = encode_scale(largest / 6.0F);
      const float half_scale = 0.5F * decode_scale(scale);
      std::array<uint8_t, 16> codes{};
      for (size_t j = 0; j < codes.size(); ++j) {
        codes[j] = nearest_e2m1(members[j], half_scale);
      }
      block[group] = static_cast<std::byte>(scale);
      pack_codes<8>(codes.data(), block + 4 + 8 * group);
    }
  }

  /// ggml's own rounding to unsigned E4M3: halves go up, and everything from 248 becomes 448.
  static uint8_t encode_scale(float scale) noexcept {
    if (!(scale > 0.0F)) {
      return 0;
    }
    if (scale >= 248.0F) {
      return 0x7E;
    }
    if (scale < 0x1p-6F) {
      return static_cast<uint8_t>(std::min(7.0F, std::trunc(scale * 512.0F + 0.5F)));
    }
    const uint32_t bits = std::bit_cast<uint32_t>(scale);
    return static_cast<uint8_t>((bits >> 20) + ((bits >> 19) & 1U) - (120U << 3));
  }

  /// Every scale byte has a value.
  static bool is_valid(const std::byte*) noexcept { return true; }
};

}  // namespace octet::types
