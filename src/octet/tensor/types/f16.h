// F16: IEEE half precision.
// Largest magnitude 65504; values beyond become infinite.
// A "block" is one value.
#pragma once

#include "octet/tensor/dtype.h"
#include "octet/tensor/types/block_bytes.h"
#include "octet/tensor/types/encode_context.h"

namespace octet::types {

struct F16 {
  static constexpr DType kDType = DType::kF16;
  static constexpr DTypeFacts kFacts{"F16", 1, 1, 2};

  static void decode(const std::byte* block, float* out) noexcept { *out = load_f16(block); }

  static void encode(const float* values, const EncodeContext&, std::byte* block) noexcept {
    store_f16(block, *values);
  }

  static bool is_valid(const std::byte* block) noexcept { return is_finite_f16(block); }
};

}  // namespace octet::types
