// The matrix products of avx2: see matmul_kernels.h.
#pragma once

#include "octet/kernels/cpu/matmul_kernels.h"

namespace octet::cpu::avx2 {

extern const MatmulKernels kMatmulKernels;

}  // namespace octet::cpu::avx2
