// The vector kernels of avx2: see vector_kernels.h.
#pragma once

#include "octet/kernels/cpu/vector_kernels.h"

namespace octet::cpu::avx2 {

extern const VectorKernels kVectorKernels;

}  // namespace octet::cpu::avx2
