// Activations in NVFP4, as servers round them for W4A4: blocks of 16 with an E4M3
// scale each, found anew for every row, beside one calibrated input scale of the whole tensor. Not
// for weights (types/nvfp4_modelopt.h). Invariant: a block depends on its own values and the input
// scale alone; reciprocals are correctly rounded, where GPUs approximate them.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "octet/tensor/types/float_formats.h"

namespace octet {

inline constexpr int64_t kNvfp4ActivationBlock = 16;
/// An input scale is the calibrated largest magnitude divided by this.
inline constexpr float kNvfp4InputRange = 6.0F * 448.0F;

/// value = code / 2 * scale * input scale.
struct Nvfp4ActivationBlock {
  std::array<int8_t, kNvfp4ActivationBlock> doubled_codes{};  // twice E2M1: 0 +-1 2 3 4 6 8 12
  float scale = 0.0F;  // E4M3; NaN where a value is not finite
};

/// `values`: 16 floats, rounded to bfloat16 first. Magnitudes beyond 6 * 448 * input_scale
/// saturate, blocks below about 2^-10 * 6 * input_scale become zero.
inline Nvfp4ActivationBlock round_nvfp4_activations(
    const float* values, float input_scale
) noexcept {
  std::array<float, kNvfp4ActivationBlock> x{};
  int32_t largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = bf16_to_f32(f32_to_bf16(values[i]));
    largest = std::max(largest, std::bit_cast<int32_t>(x[i]) & 0x7FFFFFFF);
  }
  Nvfp4ActivationBlock block;
  const auto amax = std::bit_cast<float>(largest);
  if (!(amax <= std::numeric_limits<float>::max())) {
    block.scale = std::numeric_limits<float>::quiet_NaN();
    return block;
  }
  const float inverse = 1.0F / input_scale;
  block.scale = e4m3_to_f32(f32_to_e4m3(inverse * (amax * (1.0F / 6.0F))));
  const float factor = block.scale == 0.0F ? 0.0F : 1.0F / (block.scale * (1.0F / inverse));
  for (size_t i = 0; i < x.size(); ++i) {
    block.doubled_codes[i] = f32_to_doubled_e2m1(x[i] * factor);
  }
  return block;
}

}  // namespace octet
