// Machine-limit probes of Armv8.2 with dotprod.
#pragma once

#include "octet/kernels/cpu/probe_kernels.h"

namespace octet::cpu::neon_dotprod {

extern const ProbeKernels kProbeKernels;

}  // namespace octet::cpu::neon_dotprod
