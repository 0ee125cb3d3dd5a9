#include "octet/kernels/cpu/isa/avx2/vector.h"

#include "octet/kernels/cpu/isa/avx2/lanes.h"
#include "octet/kernels/cpu/vector_generic.h"

namespace octet::cpu::avx2 {

constinit const VectorKernels kVectorKernels = make_vector_kernels<Lanes>();

}  // namespace octet::cpu::avx2
