// Sixteen output rows as plain arrays: the Lanes of matmul/tile_kernel.h in C++ alone, for every
// machine. What each operation means is read best here; compilers turn most of the loops into
// vector code.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "octet/tensor/types/float_formats.h"

namespace octet::cpu::portable {

struct Lanes {
  static constexpr int64_t kLanes = 16;
  static constexpr int kGroupRows = 2;
  static constexpr int kKeptCodes = 0;
  static constexpr int kSignedBias = 0;

  template <typename T, int64_t n>
  struct Array {
    T values[n];
  };
  using Float = Array<float, kLanes>;
  using Int = Array<int32_t, kLanes>;
  using Bytes = Array<uint8_t, 4 * kLanes>;
  using Quad = Array<int8_t, 4>;
  using LevelTable = std::array<int8_t, 16>;

  static Float zero() { return constant(0.0F); }
  static Float constant(float value) {
    return each<Float>([&](int64_t) { return value; });
  }
  static Float load(const float* values) { return read<Float>(values); }
  static void store(float* values, const Float& x) { std::memcpy(values, &x, sizeof x); }
  static Float broadcast(const std::byte* value) { return constant(read<float>(value)); }
  static Float add(const Float& a, const Float& b) {
    return each<Float>([&](int64_t i) { return a.values[i] + b.values[i]; });
  }
  static Float mul(const Float& a, const Float& b) {
    return each<Float>([&](int64_t i) { return a.values[i] * b.values[i]; });
  }
  static Float fma(const Float& a, const Float& b, const Float& c) {
    return each<Float>([&](int64_t i) {
      return multiply_add(a.values[i], b.values[i], c.values[i]);
    });
  }
  static Float fnma(const Float& a, const Float& b, const Float& c) {
    return each<Float>([&](int64_t i) {
      return multiply_add(-a.values[i], b.values[i], c.values[i]);
    });
  }
  static Float to_float(const Int& x) {
    return each<Float>([&](int64_t i) { return static_cast<float>(x.values[i]); });
  }

  static Float load_f16(const std::byte* values) {
    return each<Float>([&](int64_t i) { return f16_to_f32(read<uint16_t>(values + 2 * i)); });
  }
  static Float low_bf16(const Bytes& pairs) {
    const Int lanes = as_int(pairs);
    return each<Float>([&](int64_t i) {
      return std::bit_cast<float>(static_cast<uint32_t>(lanes.values[i]) << 16);
    });
  }
  static Float high_bf16(const Bytes& pairs) {
    const Int lanes = as_int(pairs);
    return each<Float>([&](int64_t i) {
      return std::bit_cast<float>(static_cast<uint32_t>(lanes.values[i]) & 0xFFFF0000U);
    });
  }
  /// 2^(e - 127); 0 for e = 0.
  static Float load_exponent(const std::byte* values) {
    return each<Float>([&](int64_t i) {
      return std::bit_cast<float>(static_cast<uint32_t>(values[i]) << 23);
    });
  }
  /// E4M3 * 2^-8.
  static Float load_e4m3(const std::byte* values) {
    return each<Float>([&](int64_t i) {
      return std::bit_cast<float>(static_cast<uint32_t>(values[i]) << 20) * 0x1p112F;
    });
  }

  static Int zero_int() {
    return each<Int>([](int64_t) { return 0; });
  }
  static Int load_int(const std::byte* values) { return read<Int>(values); }
  static Int load_i8(const std::byte* values) {
    return each<Int>([&](int64_t i) { return static_cast<int8_t>(values[i]); });
  }
  static Int broadcast_int(const std::byte* value) {
    return each<Int>([x = read<int32_t>(value)](int64_t) { return x; });
  }
  static Int and_int(const Int& x, int32_t mask) {
    return each<Int>([&](int64_t i) { return x.values[i] & mask; });
  }
  static Int or_int(const Int& x, const Int& y) {
    return each<Int>([&](int64_t i) { return x.values[i] | y.values[i]; });
  }
  static Int shift_right_int(const Int& x, int64_t count) {
    return each<Int>([&](int64_t i) {
      return static_cast<int32_t>(static_cast<uint32_t>(x.values[i]) >> count);
    });
  }
  static Int bits6(const Int& x, int64_t first) { return and_int(shift_right_int(x, first), 63); }
  /// sum + the dot product of two int16 a lane.
  static Int dot_pairs(const Int& sum, const Int& x, const Int& y) {
    return each<Int>([&](int64_t i) {
      const int32_t low = static_cast<int16_t>(x.values[i]) * static_cast<int16_t>(y.values[i]);
      const int32_t high = (x.values[i] >> 16) * (y.values[i] >> 16);
      return sum.values[i] + low + high;
    });
  }

  static Bytes load_bytes(const std::byte* values) { return read<Bytes>(values); }
  static Quad broadcast_quad(const std::byte* value) { return read<Quad>(value); }
  template <int half>
  static Bytes nibbles(const Bytes& x) {
    return each_byte([&](int64_t i) { return (x.values[i] >> (4 * half)) & 0x0F; });
  }
  template <int half>
  static Bytes raw_nibbles(const Bytes& x) {
    return nibbles<half>(x);
  }
  template <int half>
  static Float unscale_raw_nibbles(const Float& d) {
    return d;
  }
  /// nibbles + 16 * bit `bit` of the plane's bytes.
  static Bytes with_fifth(const Bytes& nibbles, const Bytes& plane, int64_t bit) {
    return each_byte([&](int64_t i) {
      return nibbles.values[i] | (((plane.values[i] >> bit) & 1) << 4);
    });
  }
  static Bytes low6(const Bytes& x) {
    return each_byte([&](int64_t i) { return x.values[i] & 0x3F; });
  }
  /// The top two bits of three bytes as one 6-bit code, the first on top.
  static Bytes join_top_bits(const Bytes& b0, const Bytes& b1, const Bytes& b2) {
    return each_byte([&](int64_t i) {
      return ((b0.values[i] >> 6) << 4) | ((b1.values[i] >> 6) << 2) | (b2.values[i] >> 6);
    });
  }

  template <int bias>
  static LevelTable level_table(const std::array<int8_t, 16>& levels) {
    static_assert(bias == 0);
    return levels;
  }
  static Bytes look_up(const LevelTable& table, const Bytes& codes) {
    return each_byte([&](int64_t i) { return static_cast<uint8_t>(table[codes.values[i]]); });
  }
  static Bytes biased(const Bytes& x) { return x; }

  /// Dot product of weights (unsigned or signed bytes) and signed activations, four values a lane.
  template <typename Weight>
  struct Dot {
    using Acc = Int;
    static constexpr int kRun = 8;  // code vectors between begin and end
    static Acc begin(const Int& total) { return total; }
    static Acc step(const Acc& acc, const Bytes& weights, const Quad& activations) {
      return each<Int>([&](int64_t i) {
        int32_t sum = acc.values[i];
        for (int64_t b = 0; b < 4; ++b) {
          sum += static_cast<Weight>(weights.values[4 * i + b]) * activations.values[b];
        }
        return sum;
      });
    }
    static Int end(const Int& /*total*/, const Acc& acc) { return acc; }
  };
  template <int largest>
  using UnsignedDot = Dot<uint8_t>;
  template <int largest>
  using SignedDot = Dot<int8_t>;

 private:
  template <typename Vector, typename Make>
  static Vector each(Make make) {
    Vector result;  // NOLINT(cppcoreguidelines-init-variables): filled at once
    for (int64_t i = 0; i < kLanes; ++i) {
      result.values[i] = make(i);
    }
    return result;
  }
  template <typename Make>
  static Bytes each_byte(Make make) {
    Bytes result;  // NOLINT(cppcoreguidelines-init-variables): filled at once
    for (int64_t i = 0; i < 4 * kLanes; ++i) {
      result.values[i] = static_cast<uint8_t>(make(i));
    }
    return result;
  }
  template <typename T>
  static T read(const void* bytes) {
    T value;  // NOLINT(cppcoreguidelines-init-variables): filled at once
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  static Int as_int(const Bytes& x) { return read<Int>(&x); }
  static float multiply_add(float a, float b, float c) {
#ifdef __FP_FAST_FMAF
    return std::fma(a, b, c);
#else
    return a * b + c;
#endif
  }
};

}  // namespace octet::cpu::portable
