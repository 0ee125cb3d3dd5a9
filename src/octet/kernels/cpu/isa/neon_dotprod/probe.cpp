#include "octet/kernels/cpu/isa/neon_dotprod/probe.h"

#include "octet/kernels/cpu/isa/neon_dotprod/probe_lanes.h"

namespace octet::cpu::neon_dotprod {
namespace {

#include "octet/kernels/cpu/probe_generic.h"

}  // namespace

const ProbeKernels kProbeKernels = {
    .read = &probe_read, .int8_operations = &probe_int8, .float_operations = &probe_float};

}  // namespace octet::cpu::neon_dotprod
