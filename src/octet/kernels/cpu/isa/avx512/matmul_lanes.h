// Sixteen output rows in one 512-bit register, with the VNNI byte dot product: the Lanes of
// matmul/tile_kernel.h. Include only from files compiled for AVX-512 VNNI.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <immintrin.h>

namespace octet::cpu::avx512 {

struct Lanes {
  using Float = __m512;
  using Int = __m512i;
  using Bytes = __m512i;
  using Quad = __m512i;
  using LevelTable = __m512i;

  static constexpr int kLanes = 16;
  /// Eight rows: eight integer and eight float sums leave half the registers for weights, scales
  /// and masks.
  static constexpr int kGroupRows = 8;
  static constexpr int kKeptCodes = 1;
  /// vpdpbusd wants unsigned weights: signed ones carry this bias, and sums start at -bias * sum of
  /// activations.
  static constexpr int kSignedBias = 128;

  static Float zero() { return _mm512_setzero_ps(); }
  static Float constant(float value) { return _mm512_set1_ps(value); }
  static Float load(const float* values) { return _mm512_loadu_ps(values); }
  static void store(float* values, Float x) { _mm512_storeu_ps(values, x); }
  static Float broadcast(const std::byte* value) { return _mm512_set1_ps(read<float>(value)); }
  static Float add(Float a, Float b) { return _mm512_add_ps(a, b); }
  static Float mul(Float a, Float b) { return _mm512_mul_ps(a, b); }
  static Float fma(Float a, Float b, Float c) { return _mm512_fmadd_ps(a, b, c); }
  static Float fnma(Float a, Float b, Float c) { return _mm512_fnmadd_ps(a, b, c); }
  static Float to_float(Int x) { return _mm512_cvtepi32_ps(x); }

  static Float load_f16(const std::byte* values) { return _mm512_cvtph_ps(load_256(values)); }
  static Float low_bf16(Bytes pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)); }
  static Float high_bf16(Bytes pairs) {
    return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(-0x10000)));
  }
  /// 2^(e - 127); 0 for e = 0.
  static Float load_exponent(const std::byte* values) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu8_epi32(load_128(values)), 23));
  }
  /// E4M3 * 2^-8: as the upper bits of a half the exponent has the bias 15 instead of 7.
  static Float load_e4m3(const std::byte* values) {
    return _mm512_cvtph_ps(_mm256_slli_epi16(_mm256_cvtepu8_epi16(load_128(values)), 7));
  }

  static Int zero_int() { return _mm512_setzero_si512(); }
  static Int load_int(const std::byte* values) { return _mm512_loadu_si512(values); }
  static Int load_i8(const std::byte* values) { return _mm512_cvtepi8_epi32(load_128(values)); }
  static Int broadcast_int(const std::byte* value) {
    return _mm512_set1_epi32(read<int32_t>(value));
  }
  static Int and_int(Int x, int32_t mask) { return _mm512_and_si512(x, _mm512_set1_epi32(mask)); }
  static Int or_int(Int x, Int y) { return _mm512_or_si512(x, y); }
  static Int shift_right_int(Int x, int64_t count) {
    return _mm512_srl_epi32(x, _mm_cvtsi64_si128(count));
  }
  static Int bits6(Int x, int64_t first) { return and_int(shift_right_int(x, first), 63); }
  /// sum + the dot product of two int16 a lane.
  static Int dot_pairs(Int sum, Int x, Int y) { return _mm512_dpwssd_epi32(sum, x, y); }

  static Bytes load_bytes(const std::byte* values) { return _mm512_loadu_si512(values); }
  static Quad broadcast_quad(const std::byte* value) { return broadcast_int(value); }
  template <int half>
  static Bytes nibbles(Bytes x) {
    return and_bytes(half == 0 ? x : _mm512_srli_epi16(x, 4), 0x0F);
  }
  /// Nibbles where they are: those of half 1 count 16-fold, which unscale_raw_nibbles takes back
  /// exactly.
  template <int half>
  static Bytes raw_nibbles(Bytes x) {
    return and_bytes(x, half == 0 ? 0x0F : 0xF0);
  }
  template <int half>
  static Float unscale_raw_nibbles(Float d) {
    return half == 0 ? d : mul(d, constant(0.0625F));
  }
  /// nibbles + 16 * bit `bit` of the plane's bytes.
  static Bytes with_fifth(Bytes nibbles, Bytes plane, int64_t bit) {
    const Bytes fifth = bit < 4 ? _mm512_slli_epi16(plane, static_cast<int>(4 - bit))
                                : _mm512_srli_epi16(plane, static_cast<int>(bit - 4));
    return _mm512_ternarylogic_epi32(nibbles, fifth, _mm512_set1_epi8(0x10), kOrWithMasked);
  }
  static Bytes low6(Bytes x) { return and_bytes(x, 0x3F); }
  /// The top two bits of three bytes as one 6-bit code, the first on top.
  static Bytes join_top_bits(Bytes b0, Bytes b1, Bytes b2) {
    const Bytes upper = _mm512_ternarylogic_epi32(
        _mm512_srli_epi16(b0, 2), _mm512_srli_epi16(b1, 4), _mm512_set1_epi8(0x30), kSelect
    );
    const Bytes all =
        _mm512_ternarylogic_epi32(upper, _mm512_srli_epi16(b2, 6), _mm512_set1_epi8(0x3C), kSelect);
    return low6(all);
  }

  template <int bias>
  static LevelTable level_table(const std::array<int8_t, 16>& levels) {
    const __m128i table = load_128(reinterpret_cast<const std::byte*>(levels.data()));
    return _mm512_broadcast_i32x4(_mm_add_epi8(table, _mm_set1_epi8(static_cast<char>(bias))));
  }
  static Bytes look_up(LevelTable table, Bytes codes) { return _mm512_shuffle_epi8(table, codes); }
  static Bytes biased(Bytes x) { return _mm512_xor_si512(x, _mm512_set1_epi8(-128)); }

  /// Dot product of unsigned weights and signed activations, four values a lane, summed in 32 bits
  /// at once.
  struct Dot {
    using Acc = Int;
    static constexpr int kRun = 8;  // code vectors between begin and end
    static Acc begin(Int total) { return total; }
    static Acc step(Acc acc, Bytes weights, Quad activations) {
      return _mm512_dpbusd_epi32(acc, weights, activations);
    }
    static Int end(Int /*total*/, Acc acc) { return acc; }
  };
  template <int largest>
  using UnsignedDot = Dot;
  template <int largest>
  using SignedDot = Dot;

 private:
  // Truth tables of vpternlog for operands (a, b, c): c is the mask.
  static constexpr int kOrWithMasked = 0xF8;  // a | (b & c)
  static constexpr int kSelect = 0xE4;        // c ? a : b

  template <typename T>
  static T read(const std::byte* bytes) {
    T value;  // NOLINT(cppcoreguidelines-init-variables): filled at once
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  static Bytes and_bytes(Bytes x, int mask) {
    return _mm512_and_si512(x, _mm512_set1_epi8(static_cast<char>(mask)));
  }
  static __m128i load_128(const std::byte* bytes) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
  }
  static __m256i load_256(const std::byte* bytes) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
  }
};

}  // namespace octet::cpu::avx512
