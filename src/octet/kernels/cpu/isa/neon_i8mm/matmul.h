// The matrix products of neon_i8mm: see matmul_kernels.h.
#pragma once

#include "octet/kernels/cpu/matmul_kernels.h"

namespace octet::cpu::neon_i8mm {

extern const MatmulKernels kMatmulKernels;

}  // namespace octet::cpu::neon_i8mm
