// Machine-limit probes of AVX-512 with VNNI.
#pragma once

#include "octet/kernels/cpu/probe_kernels.h"

namespace octet::cpu::avx512 {

extern const ProbeKernels kProbeKernels;

}  // namespace octet::cpu::avx512
