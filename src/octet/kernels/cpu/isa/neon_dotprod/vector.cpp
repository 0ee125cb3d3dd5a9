#include "octet/kernels/cpu/isa/neon_dotprod/vector.h"

#include "octet/kernels/cpu/isa/neon_dotprod/vector_target.h"
#include "octet/kernels/cpu/vector_generic.h"

namespace octet::cpu::neon_dotprod {

constinit const VectorKernels kVectorKernels = make_vector_kernels<QuadLanes<VectorTarget>>();

}  // namespace octet::cpu::neon_dotprod
