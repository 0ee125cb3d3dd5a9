// The vector operations of the machine-limit probes (probe_generic.h) in 256-bit registers. Include
// only from files compiled for AVX2.
#pragma once

#include <array>
#include <cstdint>
#include <immintrin.h>

namespace octet::cpu::avx2 {

struct Probe {
  using Integers = __m256i;
  using Floats = __m256;
  static constexpr int64_t kDotOperations = 64;  // 32 multiplications and 32 additions
  static constexpr int64_t kFloatOperations = 16;

  static Integers zero_integers() { return _mm256_setzero_si256(); }
  static Integers load(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
  }
  static Integers combine(Integers x, Integers y) { return _mm256_xor_si256(x, y); }
  static uint64_t fold(Integers x) {
    std::array<uint64_t, 4> parts{};
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(parts.data()), x);
    return parts[0] + parts[1] + parts[2] + parts[3];
  }
  static Integers ramp() { return _mm256_set1_epi32(0x04030201); }
  static Integers dot(Integers sum, Integers x, Integers y) {
    // In assembly: operands that stay the same would have the product taken once, before the loop,
    // and sums that are not added to in place would be spilled.
    Integers pairs;
    const Integers ones = _mm256_set1_epi16(1);
    asm volatile("vpmaddubsw %3, %2, %1\n\tvpmaddwd %4, %1, %1\n\tvpaddd %1, %0, %0"
                 : "+x"(sum), "=&x"(pairs)
                 : "x"(x), "x"(y), "x"(ones));
    return sum;
  }
  static Floats zero_floats() { return _mm256_setzero_ps(); }
  static Floats half() { return _mm256_set1_ps(0.5F); }
  static Floats multiply_add(Floats sum, Floats x, Floats y) { return _mm256_fmadd_ps(x, y, sum); }
};

}  // namespace octet::cpu::avx2
