#include "octet/kernels/cpu/isa/avx512/vector.h"

#include "octet/kernels/cpu/isa/avx512/vector_lanes.h"
#include "octet/kernels/cpu/vector_generic.h"

namespace octet::cpu::avx512 {

constinit const VectorKernels kVectorKernels = make_vector_kernels<VectorLanes>();

}  // namespace octet::cpu::avx512
