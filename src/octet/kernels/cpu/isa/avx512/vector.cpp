#include "octet/kernels/cpu/isa/avx512/vector.h"

#include "octet/kernels/cpu/isa/avx512/lanes.h"
#include "octet/kernels/cpu/vector_generic.h"

namespace octet::cpu::avx512 {

constinit const VectorKernels kVectorKernels = make_vector_kernels<Lanes>();

}  // namespace octet::cpu::avx512
