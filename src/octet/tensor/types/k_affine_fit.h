// The common part of encoding Q4_K and Q5_K: fits eight groups of 32 values by scale and minimum,
// then the scales and minimums of the groups by one scale each, then the codes anew to what will be
// decoded. Not a layout: packing is in q4_k.h and q5_k.h.
#pragma once

#include <array>
#include <cstdint>

#include "octet/tensor/quantize_search.h"
#include "octet/tensor/types/encode_context.h"
#include "octet/tensor/types/k_scales.h"

namespace octet::types {

struct KAffineFit {
  uint16_t d = 0;     // f16
  uint16_t dmin = 0;  // f16
  std::array<GroupScale, 8> groups;
  std::array<uint8_t, 256> codes{};  // in the order of the values
};

/// Fits 256 values with codes 0..max_code. `trials` is used without importance.
KAffineFit fit_k_affine(
    const float* values, const EncodeContext& context, int max_code, const AffineTrials& trials
) noexcept;

}  // namespace octet::types
