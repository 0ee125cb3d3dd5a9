// The vector kernels of neon_dotprod: see vector_kernels.h.
#pragma once

#include "octet/kernels/cpu/vector_kernels.h"

namespace octet::cpu::neon_dotprod {

extern const VectorKernels kVectorKernels;

}  // namespace octet::cpu::neon_dotprod
