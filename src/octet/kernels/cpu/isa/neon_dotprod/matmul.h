// The matrix products of neon_dotprod: see matmul_kernels.h.
#pragma once

#include "octet/kernels/cpu/matmul_kernels.h"

namespace octet::cpu::neon_dotprod {

extern const MatmulKernels kMatmulKernels;

}  // namespace octet::cpu::neon_dotprod
