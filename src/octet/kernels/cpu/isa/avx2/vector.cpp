#include "octet/kernels/cpu/isa/avx2/vector.h"

#include "octet/kernels/cpu/isa/avx2/vector_lanes.h"
#include "octet/kernels/cpu/vector_generic.h"

namespace octet::cpu::avx2 {

constinit const VectorKernels kVectorKernels = make_vector_kernels<VectorLanes>();

}  // namespace octet::cpu::avx2
