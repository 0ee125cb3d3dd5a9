// Eight output rows in one 256-bit register: the Lanes of matmul/tile_kernel.h for CPUs with AVX2,
// FMA and F16C. vpmaddubsw adds two products in 16 bits and saturates, so every dot product here
// states the largest weight for which it is exact. Include only from files compiled for AVX2.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <immintrin.h>

namespace octet::cpu::avx2 {

struct Lanes {
  using Float = __m256;
  using Int = __m256i;
  using Bytes = __m256i;
  using Quad = __m256i;
  using LevelTable = __m256i;

  static constexpr int kLanes = 8;
  /// Four rows: four integer and four float sums leave half of the sixteen registers for the rest.
  static constexpr int kGroupRows = 4;
  static constexpr int kKeptCodes = 2;
  static constexpr int kSignedBias = 0;

  static Float zero() { return _mm256_setzero_ps(); }
  static Float constant(float value) { return _mm256_set1_ps(value); }
  static Float load(const float* values) { return _mm256_loadu_ps(values); }
  static void store(float* values, Float x) { _mm256_storeu_ps(values, x); }
  static Float broadcast(const std::byte* value) { return _mm256_set1_ps(read<float>(value)); }
  static Float add(Float a, Float b) { return _mm256_add_ps(a, b); }
  static Float mul(Float a, Float b) { return _mm256_mul_ps(a, b); }
  static Float fma(Float a, Float b, Float c) { return _mm256_fmadd_ps(a, b, c); }
  static Float fnma(Float a, Float b, Float c) { return _mm256_fnmadd_ps(a, b, c); }
  static Float to_float(Int x) { return _mm256_cvtepi32_ps(x); }

  static Float load_f16(const std::byte* values) { return _mm256_cvtph_ps(load_128(values)); }
  static Float low_bf16(Bytes pairs) { return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)); }
  static Float high_bf16(Bytes pairs) {
    return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(-0x10000)));
  }
  /// 2^(e - 127); 0 for e = 0.
  static Float load_exponent(const std::byte* values) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu8_epi32(load_64(values)), 23));
  }
  /// E4M3 * 2^-8: as the upper bits of a half the exponent has the bias 15 instead of 7.
  static Float load_e4m3(const std::byte* values) {
    return _mm256_cvtph_ps(_mm_slli_epi16(_mm_cvtepu8_epi16(load_64(values)), 7));
  }

  static Int zero_int() { return _mm256_setzero_si256(); }
  static Int load_int(const std::byte* values) { return load_bytes(values); }
  static Int load_i8(const std::byte* values) { return _mm256_cvtepi8_epi32(load_64(values)); }
  static Int broadcast_int(const std::byte* value) {
    return _mm256_set1_epi32(read<int32_t>(value));
  }
  static Int and_int(Int x, int32_t mask) { return _mm256_and_si256(x, _mm256_set1_epi32(mask)); }
  static Int or_int(Int x, Int y) { return _mm256_or_si256(x, y); }
  static Int shift_right_int(Int x, int64_t count) {
    return _mm256_srl_epi32(x, _mm_cvtsi64_si128(count));
  }
  static Int bits6(Int x, int64_t first) { return and_int(shift_right_int(x, first), 63); }
  /// sum + the dot product of two int16 a lane.
  static Int dot_pairs(Int sum, Int x, Int y) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(x, y));
  }

  static Bytes load_bytes(const std::byte* values) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
  }
  static Quad broadcast_quad(const std::byte* value) { return broadcast_int(value); }
  template <int half>
  static Bytes nibbles(Bytes x) {
    return and_bytes(half == 0 ? x : _mm256_srli_epi16(x, 4), 0x0F);
  }
  /// Nibbles left in place would saturate the 16-bit sums.
  template <int half>
  static Bytes raw_nibbles(Bytes x) {
    return nibbles<half>(x);
  }
  template <int half>
  static Float unscale_raw_nibbles(Float d) {
    return d;
  }
  /// nibbles + 16 * bit `bit` of the plane's bytes.
  static Bytes with_fifth(Bytes nibbles, Bytes plane, int64_t bit) {
    const Bytes fifth = bit < 4 ? _mm256_slli_epi16(plane, static_cast<int>(4 - bit))
                                : _mm256_srli_epi16(plane, static_cast<int>(bit - 4));
    return _mm256_or_si256(nibbles, and_bytes(fifth, 0x10));
  }
  static Bytes low6(Bytes x) { return and_bytes(x, 0x3F); }
  /// The top two bits of three bytes as one 6-bit code, the first on top.
  static Bytes join_top_bits(Bytes b0, Bytes b1, Bytes b2) {
    return _mm256_or_si256(
        _mm256_or_si256(
            and_bytes(_mm256_srli_epi16(b0, 2), 0x30), and_bytes(_mm256_srli_epi16(b1, 4), 0x0C)
        ),
        and_bytes(_mm256_srli_epi16(b2, 6), 0x03)
    );
  }

  template <int bias>
  static LevelTable level_table(const std::array<int8_t, 16>& levels) {
    static_assert(bias == 0);
    return _mm256_broadcastsi128_si256(load_128(reinterpret_cast<const std::byte*>(levels.data())));
  }
  static Bytes look_up(LevelTable table, Bytes codes) { return _mm256_shuffle_epi8(table, codes); }
  static Bytes biased(Bytes x) { return x; }

  /// Sums of products in 16 bits for as many code vectors as cannot overflow, then widened.
  /// |activation| <= 127.
  template <int largest>
  struct WideningDot {
    using Acc = __m256i;
    static constexpr int kMostVectors = 32767 / (2 * 127 * largest);
    static_assert(kMostVectors >= 1);
    static constexpr int kRun = kMostVectors >= 8   ? 8
                                : kMostVectors >= 4 ? 4
                                : kMostVectors >= 2 ? 2
                                                    : 1;
    static Acc begin(Int /*total*/) { return _mm256_setzero_si256(); }
    static Int end(Int total, Acc acc) {
      return _mm256_add_epi32(total, _mm256_madd_epi16(acc, _mm256_set1_epi16(1)));
    }
  };
  template <int largest>
  struct UnsignedDot : WideningDot<largest> {
    static __m256i step(__m256i acc, Bytes weights, Quad activations) {
      return _mm256_add_epi16(acc, _mm256_maddubs_epi16(weights, activations));
    }
  };
  /// The sign of the weight moves to the activation; -128 becomes 128, which is why `largest` may
  /// be 128.
  template <int largest>
  struct SignedDot : WideningDot<largest> {
    static __m256i step(__m256i acc, Bytes weights, Quad activations) {
      const Bytes magnitudes = _mm256_abs_epi8(weights);
      return _mm256_add_epi16(
          acc, _mm256_maddubs_epi16(magnitudes, _mm256_sign_epi8(activations, weights))
      );
    }
  };

 private:
  template <typename T>
  static T read(const std::byte* bytes) {
    T value;  // NOLINT(cppcoreguidelines-init-variables): filled at once
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  static Bytes and_bytes(Bytes x, int mask) {
    return _mm256_and_si256(x, _mm256_set1_epi8(static_cast<char>(mask)));
  }
  static __m128i load_64(const std::byte* bytes) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes));
  }
  static __m128i load_128(const std::byte* bytes) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
  }
};

}  // namespace octet::cpu::avx2
