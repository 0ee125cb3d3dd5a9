// Eight output rows in one 256-bit register with the VNNI byte dot product: the Lanes of
// matmul/tile_kernel.h for CPUs with AVX-VNNI but without AVX-512. Everything but the dot products,
// and what they allow, is that of AVX2. Include only from files compiled for AVX-VNNI.
#pragma once

#include "octet/kernels/cpu/isa/avx2/matmul_lanes.h"

namespace octet::cpu::avx_vnni {

struct Lanes : avx2::Lanes {
  /// vpdpbusd wants unsigned weights: signed ones carry this bias, and sums start at -bias * sum of
  /// activations.
  static constexpr int kSignedBias = 128;
  static constexpr int kKeptCodes = 1;

  /// sum + the dot product of two int16 a lane.
  static Int dot_pairs(Int sum, Int x, Int y) { return _mm256_dpwssd_avx_epi32(sum, x, y); }

  /// Nibbles where they are: those of half 1 count 16-fold, which unscale_raw_nibbles takes back
  /// exactly.
  template <int half>
  static Bytes raw_nibbles(Bytes x) {
    return _mm256_and_si256(x, _mm256_set1_epi8(static_cast<char>(half == 0 ? 0x0F : 0xF0)));
  }
  template <int half>
  static Float unscale_raw_nibbles(Float d) {
    return half == 0 ? d : mul(d, constant(0.0625F));
  }

  template <int bias>
  static LevelTable level_table(const std::array<int8_t, 16>& levels) {
    return _mm256_add_epi8(
        avx2::Lanes::level_table<0>(levels), _mm256_set1_epi8(static_cast<char>(bias))
    );
  }
  static Bytes biased(Bytes x) { return _mm256_xor_si256(x, _mm256_set1_epi8(-128)); }

  /// Dot product of unsigned weights and signed activations, four values a lane, summed in 32 bits
  /// at once.
  struct Dot {
    using Acc = Int;
    static constexpr int kRun = 8;  // code vectors between begin and end
    static Acc begin(Int total) { return total; }
    static Acc step(Acc acc, Bytes weights, Quad activations) {
      return _mm256_dpbusd_avx_epi32(acc, weights, activations);
    }
    static Int end(Int /*total*/, Acc acc) { return acc; }
  };
  template <int largest>
  using UnsignedDot = Dot;
  template <int largest>
  using SignedDot = Dot;
};

}  // namespace octet::cpu::avx_vnni
