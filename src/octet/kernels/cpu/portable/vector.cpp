#include "octet/kernels/cpu/portable/vector.h"

#include "octet/kernels/cpu/quad_lanes.h"
#include "octet/kernels/cpu/vector_generic.h"

namespace octet::cpu::portable {

// Separate roundings: the fused operation would be a slow library call on CPUs that lack it.
constinit const VectorKernels kVectorKernels = make_vector_kernels<QuadLanes<SeparateArithmetic>>();

}  // namespace octet::cpu::portable
