// Machine-limit probes without special instructions: a lower bound of what the machine can do.
#pragma once

#include "octet/kernels/cpu/probe_kernels.h"

namespace octet::cpu::portable {

extern const ProbeKernels kProbeKernels;

}  // namespace octet::cpu::portable
