#include "octet/kernels/cpu/portable/vector.h"

#include "octet/kernels/cpu/quad_lanes.h"
#include "octet/kernels/cpu/vector_generic.h"

namespace octet::cpu::portable {

/// Products and sums rounded separately: the fused operation would be a slow library call on CPUs
/// that lack it. Tiles for sixteen registers.
struct VectorTarget {
  static FloatQuad multiply_add(FloatQuad a, FloatQuad b, FloatQuad c) { return a * b + c; }
  static FloatQuad subtract_product(FloatQuad a, FloatQuad b, FloatQuad c) { return c - a * b; }
  static constexpr int kScoreQueries = 1;
  static constexpr int kScoreVectors = 1;
  static constexpr int kSumQueries = 1;
  static constexpr int kSumPairs = 1;
};

constinit const VectorKernels kVectorKernels = make_vector_kernels<QuadLanes<VectorTarget>>();

}  // namespace octet::cpu::portable
