// The Lanes of neon_dotprod with int8 matrix multiplication (Armv8.6 i8mm): one instruction
// multiplies eight values of two output rows with two activation rows, twice the work of a dot
// product. Sums of integers are exact, so the results are those of the dot products. Include only
// from files compiled for it.
#pragma once

#include "octet/kernels/cpu/isa/neon_dotprod/matmul_lanes.h"

namespace octet::cpu::neon_i8mm {

struct Lanes : neon_dotprod::Lanes {
  /// total[m] += dot products of `vectors` code vectors with M activation rows, as dot_codes() of
  /// matmul/tile_kernel.h: rows two by two, an odd last one with dot products.
  template <int M, int64_t vectors, typename Codes>
  [[gnu::always_inline]] static inline void dot_rows(
      Int (&total)[M], const std::byte* activations, Codes codes
  ) {
    static_assert(vectors % 2 == 0);
    constexpr int kPairs = M / 2;
    int32x4_t sums[kPairs == 0 ? 1 : kPairs][4];
#pragma GCC unroll 4
    for (int pair = 0; pair < kPairs; ++pair) {
#pragma GCC unroll 4
      for (int part = 0; part < 4; ++part) {
        sums[pair][part] = vdupq_n_s32(0);
      }
    }
#pragma GCC unroll 4
    for (int64_t v = 0; v < vectors; v += 2) {
      const Bytes first = codes(v);
      const Bytes second = codes(v + 1);
      // Eight values along K of two rows each: rows (0, 1) (2, 3) (4, 5) (6, 7).
      const int8x16_t rows[4] = {
          join_low(first.low, second.low),
          join_high(first.low, second.low),
          join_low(first.high, second.high),
          join_high(first.high, second.high)};
      const std::byte* quads = activations + 4 * v * M;
#pragma GCC unroll 4
      for (int pair = 0; pair < kPairs; ++pair) {
        const int8x16_t both =
            join_low(read_two_quads(quads + 8 * pair), read_two_quads(quads + 4 * M + 8 * pair));
#pragma GCC unroll 4
        for (int part = 0; part < 4; ++part) {
          sums[pair][part] = vmmlaq_s32(sums[pair][part], rows[part], both);
        }
      }
      if constexpr (M % 2 != 0) {
        const std::byte* last = quads + 4 * (M - 1);
        total[M - 1] = Dot::step(total[M - 1], first, broadcast_quad(last));
        total[M - 1] = Dot::step(total[M - 1], second, broadcast_quad(last + 4 * M));
      }
    }
#pragma GCC unroll 4
    for (int pair = 0; pair < kPairs; ++pair) {
      // A sum holds (row, m) (row, m + 1) (row + 1, m) (row + 1, m + 1).
      const int32x4_t(&s)[4] = sums[pair];
      Int& even = total[2 * pair];
      Int& odd = total[2 * pair + 1];
      even.low = vaddq_s32(even.low, vuzp1q_s32(s[0], s[1]));
      even.high = vaddq_s32(even.high, vuzp1q_s32(s[2], s[3]));
      odd.low = vaddq_s32(odd.low, vuzp2q_s32(s[0], s[1]));
      odd.high = vaddq_s32(odd.high, vuzp2q_s32(s[2], s[3]));
    }
  }

 private:
  static int8x16_t join_low(uint8x16_t a, uint8x16_t b) {
    return vreinterpretq_s8_u32(vzip1q_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b)));
  }
  static int8x16_t join_high(uint8x16_t a, uint8x16_t b) {
    return vreinterpretq_s8_u32(vzip2q_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b)));
  }
  static uint8x16_t read_two_quads(const std::byte* quads) {
    const uint8x8_t two = vld1_u8(reinterpret_cast<const uint8_t*>(quads));
    return vcombine_u8(two, two);
  }
};

}  // namespace octet::cpu::neon_i8mm
