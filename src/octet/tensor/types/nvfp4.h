// NVFP4 in ggml's layout: 64 values in four groups of 16, each with an unsigned E4M3 scale. [4 x u8
// d][32 B codes] Group s uses scale s and bytes 8s..8s+7; within a group the usual order of
// nibbles.
//   y = e4m3(d & 0x7F) * E2M1[q];  0x7F decodes to 0
// The global scale of the tensor is LogicalTensor::scale and not applied here.
#pragma once

#include "octet/tensor/dtype.h"
#include "octet/tensor/types/block_bytes.h"

namespace octet::types {

struct NVFP4 {
  static constexpr DType kDType = DType::kNVFP4;
  static constexpr DTypeFacts kFacts{"NVFP4", 40, 64, 36};

  static void decode(const std::byte* block, float* out) noexcept {
    for (int group = 0; group < 4; ++group) {
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

  /// Every scale byte has a value.
  static bool is_valid(const std::byte*) noexcept { return true; }
};

}  // namespace octet::types
