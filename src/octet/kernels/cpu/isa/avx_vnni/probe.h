// Machine-limit probes of AVX-VNNI.
#pragma once

#include "octet/kernels/cpu/probe_kernels.h"

namespace octet::cpu::avx_vnni {

extern const ProbeKernels kProbeKernels;

}  // namespace octet::cpu::avx_vnni
