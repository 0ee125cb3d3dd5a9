// The vector kernels of avx_vnni: see vector_kernels.h.
#pragma once

#include "octet/kernels/cpu/vector_kernels.h"

namespace octet::cpu::avx_vnni {

extern const VectorKernels kVectorKernels;

}  // namespace octet::cpu::avx_vnni
