// The vector kernels of neon_i8mm: see vector_kernels.h.
#pragma once

#include "octet/kernels/cpu/vector_kernels.h"

namespace octet::cpu::neon_i8mm {

extern const VectorKernels kVectorKernels;

}  // namespace octet::cpu::neon_i8mm
