#include "octet/kernels/cpu/isa/neon_i8mm/probe.h"

#include "octet/kernels/cpu/isa/neon_dotprod/probe_lanes.h"

namespace octet::cpu::neon_i8mm {
namespace {

struct Probe : neon_dotprod::Probe {
  static constexpr int64_t kDotOperations = 64;  // 32 multiplications and 32 additions
  static Integers dot(Integers sum, Integers x, Integers y) {
    return vmmlaq_s32(sum, vreinterpretq_s8_s32(x), vreinterpretq_s8_s32(y));
  }
};

#include "octet/kernels/cpu/probe_generic.h"

}  // namespace

const ProbeKernels kProbeKernels = {
    .read = &probe_read, .int8_operations = &probe_int8, .float_operations = &probe_float};

}  // namespace octet::cpu::neon_i8mm
