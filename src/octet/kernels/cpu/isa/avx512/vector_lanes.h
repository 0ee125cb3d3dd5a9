// Sixteen float lanes in one 512-bit register; operations as documented in quad_lanes.h.
#pragma once

#include <cstdint>
#include <immintrin.h>

namespace octet::cpu::avx512 {

struct VectorLanes {
  using Floats = __m512;

  static constexpr int kScoreQueries = 4;
  static constexpr int kScoreVectors = 4;
  static constexpr int kSumQueries = 4;
  static constexpr int kSumPairs = 2;

  static Floats set(float x) { return _mm512_set1_ps(x); }
  static Floats load(const float* from) { return _mm512_loadu_ps(from); }
  static void store(float* to, Floats x) { _mm512_storeu_ps(to, x); }
  static Floats load_part(const float* from, int64_t count) {
    return _mm512_maskz_loadu_ps(first(count), from);
  }
  static void store_part(float* to, Floats x, int64_t count) {
    _mm512_mask_storeu_ps(to, first(count), x);
  }

  static Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  static Floats sub(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
  static Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Floats div(Floats a, Floats b) { return _mm512_div_ps(a, b); }
  static Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  static Floats fnma(Floats a, Floats b, Floats c) { return _mm512_fnmadd_ps(a, b, c); }
  static Floats max(Floats a, Floats b) { return _mm512_max_ps(a, b); }
  static Floats min(Floats a, Floats b) { return _mm512_min_ps(a, b); }
  static Floats select_less(Floats a, Floats b, Floats x, Floats y) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
  }
  static Floats abs(Floats x) { return _mm512_abs_ps(x); }
  static Floats with_sign(Floats magnitude, Floats sign) {
    return _mm512_or_ps(magnitude, _mm512_and_ps(sign, _mm512_set1_ps(-0.0F)));
  }
  static Floats times_power(Floats x, Floats n) { return _mm512_scalef_ps(x, n); }

  static float sum(Floats x) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }

  static Floats repeat_quad(const float* from) {
    return _mm512_broadcast_f32x4(_mm_loadu_ps(from));
  }
  static void transpose_quads(Floats (&x)[4]) {
    const __m512 low_01 = _mm512_shuffle_f32x4(x[0], x[1], 0x44);  // quads 0 1 of each
    const __m512 low_23 = _mm512_shuffle_f32x4(x[2], x[3], 0x44);
    const __m512 high_01 = _mm512_shuffle_f32x4(x[0], x[1], 0xEE);  // quads 2 3 of each
    const __m512 high_23 = _mm512_shuffle_f32x4(x[2], x[3], 0xEE);
    x[0] = _mm512_shuffle_f32x4(low_01, low_23, 0x88);
    x[1] = _mm512_shuffle_f32x4(low_01, low_23, 0xDD);
    x[2] = _mm512_shuffle_f32x4(high_01, high_23, 0x88);
    x[3] = _mm512_shuffle_f32x4(high_01, high_23, 0xDD);
  }
  static void store_quad_sums(const Floats (&x)[4], float* to) {
    const __m512 two_01 = add_pairs(x[0], x[1]);
    const __m512 two_23 = add_pairs(x[2], x[3]);
    // Quad k has the sums of quad k of x[0..3].
    const __m512 by_quad = _mm512_add_ps(
        _mm512_shuffle_ps(two_01, two_23, 0x88), _mm512_shuffle_ps(two_01, two_23, 0xDD)
    );
    const __m512i transpose =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    store(to, _mm512_permutexvar_ps(transpose, by_quad));
  }

  static Floats even(Floats words) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(words), 16));
  }
  static Floats odd(Floats words) {
    return _mm512_castsi512_ps(_mm512_and_si512(
        _mm512_castps_si512(words), _mm512_set1_epi32(static_cast<int>(0xFFFF0000U))
    ));
  }
  static Floats from_int8(const int8_t* from) {
    const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes));
  }

 private:
  static __mmask16 first(int64_t count) {
    return static_cast<__mmask16>((1U << static_cast<unsigned>(count)) - 1U);
  }
  /// In each 128-bit block: [a0 + a2, a1 + a3, b0 + b2, b1 + b3]
  static __m512 add_pairs(__m512 a, __m512 b) {
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xEE));
  }
};

}  // namespace octet::cpu::avx512
