// The vector kernels of avx512: see vector_kernels.h.
#pragma once

#include "octet/kernels/cpu/vector_kernels.h"

namespace octet::cpu::avx512 {

extern const VectorKernels kVectorKernels;

}  // namespace octet::cpu::avx512
