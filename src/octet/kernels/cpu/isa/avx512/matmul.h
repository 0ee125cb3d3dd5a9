// The matrix products of avx512: see matmul_kernels.h.
#pragma once

#include "octet/kernels/cpu/matmul_kernels.h"

namespace octet::cpu::avx512 {

extern const MatmulKernels kMatmulKernels;

}  // namespace octet::cpu::avx512
