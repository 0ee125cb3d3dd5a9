#include "octet/kernels/cpu/isa/neon_i8mm/vector.h"

#include "octet/kernels/cpu/isa/neon_dotprod/vector_target.h"
#include "octet/kernels/cpu/vector_generic.h"

namespace octet::cpu::neon_i8mm {

constinit const VectorKernels kVectorKernels =
    make_vector_kernels<QuadLanes<neon_dotprod::VectorTarget>>();

}  // namespace octet::cpu::neon_i8mm
