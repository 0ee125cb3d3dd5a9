// The searches of quantize_search.h for many groups at once, one a vector lane: the quantizers'
// speed. Not another algorithm: every lane makes the same roundings in the same order as the search
// for one group, so the codes and scales are the same bits whatever the width of the vectors
// (tests/property/tensor_lane_search.cpp).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "octet/tensor/quantize_search.h"

namespace octet {

/// Groups of one block of 256 values.
inline constexpr int64_t kAffineGroups = 8;      // of 32
inline constexpr int64_t kSymmetricGroups = 16;  // of 16

/// What one instruction set offers.
struct LaneSearch {
  std::string_view name;

  /// search_affine for the groups of a block: `values`, `weights` and `codes` have 256 elements,
  /// `fits` one a group.
  void (*affine
  )(const float* values,
    int max_code,
    const float* weights,
    const AffineTrials& trials,
    AffineFit* fits,
    uint8_t* codes) noexcept = nullptr;

  /// search_symmetric for the groups of a block; `weights` null: value^2. One scale a group.
  void (*symmetric
  )(const float* values, int limit, const float* weights, float* scales, uint8_t* codes
  ) noexcept = nullptr;
};

/// The widest vectors that this CPU has.
const LaneSearch& lane_search() noexcept;

/// All that this CPU can run, the widest first.
std::vector<const LaneSearch*> runnable_lane_searches();

}  // namespace octet
