// Machine-limit probes of AVX2.
#pragma once

#include "octet/kernels/cpu/probe_kernels.h"

namespace octet::cpu::avx2 {

extern const ProbeKernels kProbeKernels;

}  // namespace octet::cpu::avx2
