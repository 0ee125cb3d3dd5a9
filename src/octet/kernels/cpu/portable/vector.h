// The vector kernels of portable: see vector_kernels.h.
#pragma once

#include "octet/kernels/cpu/vector_kernels.h"

namespace octet::cpu::portable {

extern const VectorKernels kVectorKernels;

}  // namespace octet::cpu::portable
