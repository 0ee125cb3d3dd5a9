// Machine-limit probes of Armv8.6 with i8mm.
#pragma once

#include "octet/kernels/cpu/probe_kernels.h"

namespace octet::cpu::neon_i8mm {

extern const ProbeKernels kProbeKernels;

}  // namespace octet::cpu::neon_i8mm
