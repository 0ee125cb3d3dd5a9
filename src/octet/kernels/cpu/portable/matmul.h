// The matrix products of portable: see matmul_kernels.h.
#pragma once

#include "octet/kernels/cpu/matmul_kernels.h"

namespace octet::cpu::portable {

extern const MatmulKernels kMatmulKernels;

}  // namespace octet::cpu::portable
