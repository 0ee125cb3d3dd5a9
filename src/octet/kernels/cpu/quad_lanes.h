// Sixteen float lanes as four 128-bit vectors of the compiler, for instruction sets with 128-bit
// registers and for the portable kernels. One of the lane types that vector_generic.h is written
// over; the operations that every lane type has are documented here. Invariant: each operation
// gives the same bits as in every other lane type, but multiply-add, which Target decides.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

namespace octet::cpu {

using FloatQuad = float __attribute__((vector_size(16)));
using WordQuad = uint32_t __attribute__((vector_size(16)));
using IntQuad = int32_t __attribute__((vector_size(16)));
using ByteQuad = int8_t __attribute__((vector_size(4)));

/// `Target` has multiply_add(a, b, c), subtract_product(a, b, c) and the register tiles of
/// attention: kScoreQueries x kScoreVectors (of four keys) for scores, kSumQueries x kSumPairs (of
/// two vectors) for weighted sums.
template <class Target>
struct QuadLanes {
  struct Floats {
    FloatQuad quad[4];
  };

  static constexpr int kScoreQueries = Target::kScoreQueries;
  static constexpr int kScoreVectors = Target::kScoreVectors;
  static constexpr int kSumQueries = Target::kSumQueries;
  static constexpr int kSumPairs = Target::kSumPairs;

  template <class F>
  static Floats each(F f) {
    return {{f(0), f(1), f(2), f(3)}};
  }

  static Floats set(float x) {
    return each([&](int) { return FloatQuad{x, x, x, x}; });
  }
  static Floats load(const float* from) {
    Floats x;
    std::memcpy(&x, from, sizeof(x));
    return x;
  }
  static void store(float* to, const Floats& x) { std::memcpy(to, &x, sizeof(x)); }
  /// The first `count` < 16 lanes; the others are zero.
  static Floats load_part(const float* from, int64_t count) {
    Floats x = set(0.0F);
    std::memcpy(&x, from, static_cast<size_t>(count) * sizeof(float));
    return x;
  }
  static void store_part(float* to, const Floats& x, int64_t count) {
    std::memcpy(to, &x, static_cast<size_t>(count) * sizeof(float));
  }

  static Floats add(const Floats& a, const Floats& b) {
    return each([&](int i) { return a.quad[i] + b.quad[i]; });
  }
  static Floats sub(const Floats& a, const Floats& b) {
    return each([&](int i) { return a.quad[i] - b.quad[i]; });
  }
  static Floats mul(const Floats& a, const Floats& b) {
    return each([&](int i) { return a.quad[i] * b.quad[i]; });
  }
  static Floats div(const Floats& a, const Floats& b) {
    return each([&](int i) { return a.quad[i] / b.quad[i]; });
  }
  /// a * b + c
  static Floats fma(const Floats& a, const Floats& b, const Floats& c) {
    return each([&](int i) { return Target::multiply_add(a.quad[i], b.quad[i], c.quad[i]); });
  }
  /// c - a * b
  static Floats fnma(const Floats& a, const Floats& b, const Floats& c) {
    return each([&](int i) { return Target::subtract_product(a.quad[i], b.quad[i], c.quad[i]); });
  }
  /// a > b ? a : b, so b when either is NaN.
  static Floats max(const Floats& a, const Floats& b) {
    return each([&](int i) { return a.quad[i] > b.quad[i] ? a.quad[i] : b.quad[i]; });
  }
  /// a < b ? a : b, so b when either is NaN.
  static Floats min(const Floats& a, const Floats& b) {
    return each([&](int i) { return a.quad[i] < b.quad[i] ? a.quad[i] : b.quad[i]; });
  }
  /// a < b ? x : y
  static Floats select_less(const Floats& a, const Floats& b, const Floats& x, const Floats& y) {
    return each([&](int i) { return a.quad[i] < b.quad[i] ? x.quad[i] : y.quad[i]; });
  }
  static Floats abs(const Floats& x) {
    return each([&](int i) { return as_floats(as_words(x.quad[i]) & (WordQuad{} + 0x7FFFFFFFU)); });
  }
  /// `magnitude` >= 0 with the sign of `sign`.
  static Floats with_sign(const Floats& magnitude, const Floats& sign) {
    return each([&](int i) {
      return as_floats(
          as_words(magnitude.quad[i]) | (as_words(sign.quad[i]) & (WordQuad{} + 0x80000000U))
      );
    });
  }
  /// x * 2^n for integral |n| <= 250, rounded once.
  static Floats times_power(const Floats& x, const Floats& n) {
    return each([&](int i) {
      // Two factors, since 2^n itself may be out of range. The first product is exact.
      const IntQuad power = __builtin_convertvector(n.quad[i], IntQuad);
      const IntQuad half = power >> 1;
      return x.quad[i] * power_of_two(half) * power_of_two(power - half);
    });
  }

  /// Sum of the lanes, by halves: 16 -> 8 -> 4 -> 2 -> 1.
  static float sum(const Floats& x) {
    const FloatQuad four = (x.quad[0] + x.quad[2]) + (x.quad[1] + x.quad[3]);
    return (four[0] + four[2]) + (four[1] + four[3]);
  }

  /// The same four numbers in every quad.
  static Floats repeat_quad(const float* from) {
    FloatQuad quad;
    std::memcpy(&quad, from, sizeof(quad));
    return {{quad, quad, quad, quad}};
  }
  /// Quad k of vector i becomes quad i of vector k.
  static void transpose_quads(Floats (&x)[4]) {
    for (int i = 0; i < 4; ++i) {
      for (int k = 0; k < i; ++k) {
        std::swap(x[i].quad[k], x[k].quad[i]);
      }
    }
  }
  /// The sum of each quad, (0 + 2) + (1 + 3), of one vector after the other.
  static void store_quad_sums(const Floats (&x)[kScoreVectors], float* to) {
    for (int v = 0; v < kScoreVectors; ++v) {
      for (int i = 0; i < 4; ++i) {
        const FloatQuad& quad = x[v].quad[i];
        to[4 * v + i] = (quad[0] + quad[2]) + (quad[1] + quad[3]);
      }
    }
  }

  /// The lower halves of the words as bfloat16.
  static Floats even(const Floats& words) {
    return each([&](int i) { return as_floats(as_words(words.quad[i]) << 16); });
  }
  /// The upper halves of the words as bfloat16.
  static Floats odd(const Floats& words) {
    return each([&](int i) {
      return as_floats(as_words(words.quad[i]) & (WordQuad{} + 0xFFFF0000U));
    });
  }
  static Floats from_int8(const int8_t* from) {
    return each([&](int i) {
      ByteQuad codes;
      std::memcpy(&codes, from + 4 * i, sizeof(codes));
      return __builtin_convertvector(codes, FloatQuad);
    });
  }

 private:
  static FloatQuad as_floats(WordQuad x) { return reinterpret_cast<FloatQuad>(x); }
  static WordQuad as_words(FloatQuad x) { return reinterpret_cast<WordQuad>(x); }
  static FloatQuad power_of_two(IntQuad n) {
    return as_floats((reinterpret_cast<WordQuad>(n) + 127U) << 23);
  }
};

}  // namespace octet::cpu
