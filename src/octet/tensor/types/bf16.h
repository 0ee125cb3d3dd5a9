// BF16: the upper half of an IEEE single, the type most checkpoints are trained and published in.
// The range of float32 with 8 significant bits.
// A "block" is one value.
#pragma once

#include "octet/tensor/dtype.h"
#include "octet/tensor/types/block_bytes.h"
#include "octet/tensor/types/encode_context.h"

namespace octet::types {

struct BF16 {
  static constexpr DType kDType = DType::kBF16;
  static constexpr DTypeFacts kFacts{"BF16", 30, 1, 2};

  static void decode(const std::byte* block, float* out) noexcept {
    *out = bf16_to_f32(load_u16(block));
  }

  static void encode(const float* values, const EncodeContext&, std::byte* block) noexcept {
    store_u16(block, f32_to_bf16(*values));
  }

  static bool is_valid(const std::byte* block) noexcept {
    return (load_u16(block) & 0x7F80U) != 0x7F80U;
  }
};

}  // namespace octet::types
