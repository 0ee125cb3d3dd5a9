// NVFP4 as NVIDIA Model Optimizer exports it: codes, block scales and the global scale are separate
// tensors. A block is 16 values: 8 bytes of codes (byte k: elements 2k low, 2k+1 high), one E4M3
// scale elsewhere.
//   y = E2M1[q] * (e4m3(block scale) * global scale)   (the product of the scales rounded first)
// Invariant: block scales are positive; NaN codes and negative ones are refused by check_values.
#pragma once

#include "octet/tensor/dtype.h"
#include "octet/tensor/types/block_bytes.h"

namespace octet::types {

struct NVFP4ModelOpt {
  static constexpr DType kDType = DType::kNVFP4ModelOpt;
  static constexpr DTypeFacts kFacts{"NVFP4_MODELOPT", -1, 16, 8};

  static void decode(
      const std::byte* codes, std::byte block_scale, float global_scale, float* out
  ) noexcept {
    const float scale = e4m3_to_f32(static_cast<uint8_t>(block_scale)) * global_scale;
    for (int64_t k = 0; k < 8; ++k) {
      out[2 * k] = kE2M1Values[low_nibble(codes[k])] * scale;
      out[2 * k + 1] = kE2M1Values[high_nibble(codes[k])] * scale;
    }
  }

  /// The nearest codes for the scale as it will be decoded.
  static void encode(
      const float* values, std::byte block_scale, float global_scale, std::byte* codes
  ) noexcept {
    const float scale = e4m3_to_f32(static_cast<uint8_t>(block_scale)) * global_scale;
    for (int64_t k = 0; k < 8; ++k) {
      const int low = f32_to_e2m1(values[2 * k] / scale);
      const int high = f32_to_e2m1(values[2 * k + 1] / scale);
      codes[k] = static_cast<std::byte>(low | (high << 4));
    }
  }

  static bool is_valid_scale(std::byte block_scale) noexcept {
    return static_cast<uint8_t>(block_scale) < 0x7FU;
  }
};

}  // namespace octet::types
