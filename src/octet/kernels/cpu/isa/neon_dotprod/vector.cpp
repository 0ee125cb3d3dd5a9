#include "octet/kernels/cpu/isa/neon_dotprod/vector.h"

#include <arm_neon.h>

#include "octet/kernels/cpu/quad_lanes.h"
#include "octet/kernels/cpu/vector_generic.h"

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

constinit const VectorKernels kVectorKernels = make_vector_kernels<QuadLanes<VectorTarget>>();

}  // namespace octet::cpu::neon_dotprod
