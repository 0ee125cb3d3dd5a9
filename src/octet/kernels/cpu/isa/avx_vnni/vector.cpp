#include "octet/kernels/cpu/isa/avx_vnni/vector.h"

#include "octet/kernels/cpu/isa/avx2/vector_lanes.h"
#include "octet/kernels/cpu/vector_generic.h"

namespace octet::cpu::avx_vnni {

// Byte dot products change nothing for float vectors.
constinit const VectorKernels kVectorKernels = make_vector_kernels<avx2::VectorLanes>();

}  // namespace octet::cpu::avx_vnni
