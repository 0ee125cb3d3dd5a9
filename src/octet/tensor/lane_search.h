// The searches of quantize_search.h for four groups at once, one a vector lane: the quantizers'
// speed. Not another algorithm: every lane makes the same roundings in the same order as the search
// for one group, so the codes and scales are the same bits (tests/property/tensor_lane_search.cpp).
#pragma once

#include <array>
#include <cstdint>

#include "octet/tensor/quantize_search.h"

namespace octet {

inline constexpr int64_t kSearchLanes = 4;

/// search_affine for four groups of 32 values that follow each other: `values`, `weights` and
/// `codes` have 128 elements.
std::array<AffineFit, kSearchLanes> search_affine_lanes(
    const float* values,
    int max_code,
    const float* weights,
    const AffineTrials& trials,
    uint8_t* codes
) noexcept;

/// search_symmetric for four groups of 16 values that follow each other: `values`, `weights` (or
/// null: value^2) and `codes` have 64 elements.
std::array<float, kSearchLanes> search_symmetric_lanes(
    const float* values, int limit, const float* weights, uint8_t* codes
) noexcept;

}  // namespace octet
