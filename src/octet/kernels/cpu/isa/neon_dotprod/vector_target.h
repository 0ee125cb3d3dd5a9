// What the float vector kernels need of NEON beyond quad_lanes.h.
#pragma once

#include <arm_neon.h>

#include "octet/kernels/cpu/quad_lanes.h"

namespace octet::cpu::neon_dotprod {

/// Tiles for thirty-two registers.
struct VectorTarget {
  static FloatQuad multiply_add(FloatQuad a, FloatQuad b, FloatQuad c) {
    return vfmaq_f32(c, a, b);
  }
  static FloatQuad subtract_product(FloatQuad a, FloatQuad b, FloatQuad c) {
    return vfmsq_f32(c, a, b);
  }
  static constexpr int kScoreQueries = 2;
  static constexpr int kScoreVectors = 2;
  static constexpr int kSumQueries = 2;
  static constexpr int kSumPairs = 1;
};

}  // namespace octet::cpu::neon_dotprod
