#include "octet/kernels/cpu/isa/avx_vnni/probe.h"

#include "octet/kernels/cpu/isa/avx2/probe_lanes.h"

namespace octet::cpu::avx_vnni {
namespace {

struct Probe : avx2::Probe {
  /// In assembly: sums that are not added to in place would be spilled.
  static Integers dot(Integers sum, Integers x, Integers y) {
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(x), "x"(y));
    return sum;
  }
};

#include "octet/kernels/cpu/probe_generic.h"

}  // namespace

const ProbeKernels kProbeKernels = {
    .read = &probe_read, .int8_operations = &probe_int8, .float_operations = &probe_float};

}  // namespace octet::cpu::avx_vnni
