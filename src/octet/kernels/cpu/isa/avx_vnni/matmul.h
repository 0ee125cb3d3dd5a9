// The matrix products of avx_vnni: see matmul_kernels.h.
#pragma once

#include "octet/kernels/cpu/matmul_kernels.h"

namespace octet::cpu::avx_vnni {

extern const MatmulKernels kMatmulKernels;

}  // namespace octet::cpu::avx_vnni
