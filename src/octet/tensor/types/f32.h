// F32: plain IEEE single precision.
// The value as it is; the reference that every other type is measured against.
// A "block" is one value.
#pragma once

#include "octet/tensor/dtype.h"
#include "octet/tensor/types/block_bytes.h"
#include "octet/tensor/types/encode_context.h"

namespace octet::types {

struct F32 {
  static constexpr DType kDType = DType::kF32;
  static constexpr DTypeFacts kFacts{"F32", 0, 1, 4};

  static void decode(const std::byte* block, float* out) noexcept {
    std::memcpy(out, block, sizeof(float));
  }

  static void encode(const float* values, const EncodeContext&, std::byte* block) noexcept {
    std::memcpy(block, values, sizeof(float));
  }

  static bool is_valid(const std::byte* block) noexcept {
    return (load_u32(block) & 0x7F800000U) != 0x7F800000U;
  }
};

}  // namespace octet::types
