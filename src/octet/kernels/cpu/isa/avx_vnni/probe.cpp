#include "octet/kernels/cpu/isa/avx_vnni/probe.h"

#include "octet/kernels/cpu/isa/avx2/probe_lanes.h"

namespace octet::cpu::avx_vnni {
namespace {

struct Probe : avx2::Probe {
  static Integers dot(Integers sum, Integers x, Integers y) {
    return _mm256_dpbusd_avx_epi32(sum, x, y);
  }
};

#include "octet/kernels/cpu/probe_generic.h"

}  // namespace

const ProbeKernels kProbeKernels = {
    .read = &probe_read, .int8_operations = &probe_int8, .float_operations = &probe_float};

}  // namespace octet::cpu::avx_vnni
