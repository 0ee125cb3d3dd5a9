#include "octet/kernels/cpu/isa/avx512/probe.h"

#include <immintrin.h>

#include "octet/base/cpu_features.h"

namespace octet::cpu::avx512 {
namespace {

struct Probe {
  using Integers = __m512i;
  using Floats = __m512;
  static constexpr int64_t kDotOperations = 128;  // 64 multiplications and 64 additions
  static constexpr int64_t kFloatOperations = 32;

  static Integers zero_integers() { return _mm512_setzero_si512(); }
  static Integers load(const void* from) { return _mm512_loadu_si512(from); }
  static Integers combine(Integers x, Integers y) { return _mm512_xor_si512(x, y); }
  static uint64_t fold(Integers x) { return static_cast<uint64_t>(_mm512_reduce_add_epi64(x)); }
  static Integers ramp() { return _mm512_set1_epi32(0x04030201); }
  static Integers dot(Integers sum, Integers x, Integers y) {
    return _mm512_dpbusd_epi32(sum, x, y);
  }
  static Floats zero_floats() { return _mm512_setzero_ps(); }
  static Floats half() { return _mm512_set1_ps(0.5F); }
  static Floats multiply_add(Floats sum, Floats x, Floats y) { return _mm512_fmadd_ps(x, y, sum); }
  /// Two products and two sums in each of sixteen lanes. In assembly, because not every CPU that
  /// runs this folder has the instruction, so the compiler must not know of it.
  static Floats bf16_dot(Floats sum, Floats x, Floats y) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));
    return sum;
  }
};

#include "octet/kernels/cpu/probe_generic.h"

int64_t probe_bf16(int64_t operations) noexcept {
  if (!detect_cpu_features().avx512_bf16) {
    return 0;
  }
  constexpr int64_t kBf16Operations = 64;
  const auto a = Probe::half();
  return run_chains(operations, kBf16Operations, Probe::zero_floats(), [a](auto sum) {
    return Probe::bf16_dot(sum, a, a);
  });
}

}  // namespace

const ProbeKernels kProbeKernels = {
    .read = &probe_read,
    .int8_operations = &probe_int8,
    .float_operations = &probe_float,
    .bf16_operations = &probe_bf16};

}  // namespace octet::cpu::avx512
