// Sixteen float lanes in two 256-bit registers; operations as documented in quad_lanes.h.
#pragma once

#include <cstdint>
#include <immintrin.h>

namespace octet::cpu::avx2 {

struct VectorLanes {
  struct Floats {
    __m256 low;
    __m256 high;
  };

  static constexpr int kScoreQueries = 2;
  static constexpr int kScoreVectors = 2;
  static constexpr int kSumQueries = 2;
  static constexpr int kSumPairs = 1;

  static Floats set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static Floats load(const float* from) {
    return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)};
  }
  static void store(float* to, Floats x) {
    _mm256_storeu_ps(to, x.low);
    _mm256_storeu_ps(to + 8, x.high);
  }
  static Floats load_part(const float* from, int64_t count) {
    return {
        _mm256_maskload_ps(from, first(count)),
        count > 8 ? _mm256_maskload_ps(from + 8, first(count - 8)) : _mm256_setzero_ps()};
  }
  static void store_part(float* to, Floats x, int64_t count) {
    _mm256_maskstore_ps(to, first(count), x.low);
    if (count > 8) {
      _mm256_maskstore_ps(to + 8, first(count - 8), x.high);
    }
  }

  static Floats add(Floats a, Floats b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
  }
  static Floats sub(Floats a, Floats b) {
    return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
  }
  static Floats mul(Floats a, Floats b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
  }
  static Floats div(Floats a, Floats b) {
    return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
  }
  static Floats fma(Floats a, Floats b, Floats c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  static Floats fnma(Floats a, Floats b, Floats c) {
    return {_mm256_fnmadd_ps(a.low, b.low, c.low), _mm256_fnmadd_ps(a.high, b.high, c.high)};
  }
  static Floats max(Floats a, Floats b) {
    return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
  }
  static Floats min(Floats a, Floats b) {
    return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
  }
  static Floats select_less(Floats a, Floats b, Floats x, Floats y) {
    return {
        _mm256_blendv_ps(y.low, x.low, _mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ)),
        _mm256_blendv_ps(y.high, x.high, _mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ))};
  }
  static Floats abs(Floats x) {
    const __m256 sign = _mm256_set1_ps(-0.0F);
    return {_mm256_andnot_ps(sign, x.low), _mm256_andnot_ps(sign, x.high)};
  }
  static Floats with_sign(Floats magnitude, Floats sign) {
    const __m256 mask = _mm256_set1_ps(-0.0F);
    return {
        _mm256_or_ps(magnitude.low, _mm256_and_ps(sign.low, mask)),
        _mm256_or_ps(magnitude.high, _mm256_and_ps(sign.high, mask))};
  }
  static Floats times_power(Floats x, Floats n) {
    return {times_power(x.low, n.low), times_power(x.high, n.high)};
  }

  static float sum(Floats x) {
    const __m256 eight = _mm256_add_ps(x.low, x.high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }

  static Floats repeat_quad(const float* from) {
    const __m256 twice = _mm256_broadcast_ps(reinterpret_cast<const __m128*>(from));
    return {twice, twice};
  }
  static void transpose_quads(Floats (&x)[4]) {
    const Floats first = {low_quads(x[0].low, x[1].low), low_quads(x[2].low, x[3].low)};
    const Floats second = {high_quads(x[0].low, x[1].low), high_quads(x[2].low, x[3].low)};
    const Floats third = {low_quads(x[0].high, x[1].high), low_quads(x[2].high, x[3].high)};
    const Floats fourth = {high_quads(x[0].high, x[1].high), high_quads(x[2].high, x[3].high)};
    x[0] = first;
    x[1] = second;
    x[2] = third;
    x[3] = fourth;
  }
  static void store_quad_sums(const Floats (&x)[2], float* to) {
    const __m256 quads_01 = add_pairs(x[0].low, x[1].low);
    const __m256 quads_23 = add_pairs(x[0].high, x[1].high);
    // Lower half: x[0] and x[1] of quad 0, of quad 2; upper half: of quads 1 and 3.
    const __m256 sums = _mm256_add_ps(
        _mm256_shuffle_ps(quads_01, quads_23, 0x88), _mm256_shuffle_ps(quads_01, quads_23, 0xDD)
    );
    const __m256i order = _mm256_setr_epi32(0, 4, 2, 6, 1, 5, 3, 7);
    _mm256_storeu_ps(to, _mm256_permutevar8x32_ps(sums, order));
  }

  static Floats even(Floats words) { return {even(words.low), even(words.high)}; }
  static Floats odd(Floats words) {
    const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(0xFFFF0000U)));
    return {_mm256_and_ps(words.low, mask), _mm256_and_ps(words.high, mask)};
  }
  static Floats from_int8(const int8_t* from) { return {eight_int8(from), eight_int8(from + 8)}; }

 private:
  /// Mask of the first `count` lanes, all for count >= 8.
  static __m256i first(int64_t count) {
    return _mm256_cmpgt_epi32(
        _mm256_set1_epi32(static_cast<int>(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)
    );
  }
  static __m256 low_quads(__m256 a, __m256 b) { return _mm256_permute2f128_ps(a, b, 0x20); }
  static __m256 high_quads(__m256 a, __m256 b) { return _mm256_permute2f128_ps(a, b, 0x31); }
  /// In each quad: [a0 + a2, a1 + a3, b0 + b2, b1 + b3]
  static __m256 add_pairs(__m256 a, __m256 b) {
    return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xEE));
  }
  static __m256 even(__m256 words) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(words), 16));
  }
  static __m256 eight_int8(const int8_t* from) {
    const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes));
  }
  static __m256 power_of_two(__m256i n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
  }
  static __m256 times_power(__m256 x, __m256 n) {
    // Two factors, since 2^n itself may be out of range. The first product is exact.
    const __m256i power = _mm256_cvtps_epi32(n);
    const __m256i half = _mm256_srai_epi32(power, 1);
    return _mm256_mul_ps(
        _mm256_mul_ps(x, power_of_two(half)), power_of_two(_mm256_sub_epi32(power, half))
    );
  }
};

}  // namespace octet::cpu::avx2
