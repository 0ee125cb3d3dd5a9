#include "octet/kernels/cpu/portable/probe.h"

#include <cstring>

namespace octet::cpu::portable {
namespace {

struct Probe {
  // The compiler's own vectors: SSE2 on x86-64, NEON on AArch64.
  using Integers = int32_t __attribute__((vector_size(16)));
  using Floats = float __attribute__((vector_size(16)));
  static constexpr int64_t kDotOperations = 8;  // 4 multiplications and 4 additions of 32 bits
  static constexpr int64_t kFloatOperations = 8;

  static Integers zero_integers() { return Integers{}; }
  static Integers load(const void* from) {
    Integers value;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  static Integers combine(Integers x, Integers y) { return x ^ y; }
  static uint64_t fold(Integers x) { return static_cast<uint32_t>(x[0] ^ x[1] ^ x[2] ^ x[3]); }
  static Integers ramp() { return Integers{1, 2, 3, 4}; }
  static Integers dot(Integers sum, Integers x, Integers y) {
    asm volatile("" : "+m"(x));  // keeps the product from being hoisted out of the loop
    return sum ^ (x * y);
  }
  static Floats zero_floats() { return Floats{}; }
  static Floats half() { return Floats{0.5F, 0.5F, 0.5F, 0.5F}; }
  static Floats multiply_add(Floats sum, Floats x, Floats y) { return sum * x + y; }
};

#include "octet/kernels/cpu/probe_generic.h"

}  // namespace

const ProbeKernels kProbeKernels = {
    .read = &probe_read, .int8_operations = &probe_int8, .float_operations = &probe_float};

}  // namespace octet::cpu::portable
