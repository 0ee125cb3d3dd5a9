// Eight output rows in two 128-bit registers with the signed byte dot product: the Lanes of
// matmul/tile_kernel.h for Armv8.2 with dotprod. Every code fits a signed byte, so nothing is
// biased. Include only from files compiled for it.
#pragma once

#include <arm_neon.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace octet::cpu::neon_dotprod {

struct Lanes {
  /// Two registers: a broadcast of activations then serves two dot products.
  template <typename Register>
  struct Two {
    Register low;
    Register high;
  };
  using Float = Two<float32x4_t>;
  using Int = Two<int32x4_t>;
  using Bytes = Two<uint8x16_t>;
  using Quad = int8x16_t;
  using LevelTable = int8x16_t;

  static constexpr int kLanes = 8;
  /// Four rows: eight integer and eight float registers leave half of thirty-two for the rest.
  static constexpr int kGroupRows = 4;
  static constexpr int kKeptCodes = 1;
  static constexpr int kSignedBias = 0;

  static Float zero() { return constant(0.0F); }
  static Float constant(float value) { return {vdupq_n_f32(value), vdupq_n_f32(value)}; }
  static Float load(const float* values) { return {vld1q_f32(values), vld1q_f32(values + 4)}; }
  static void store(float* values, Float x) {
    vst1q_f32(values, x.low);
    vst1q_f32(values + 4, x.high);
  }
  static Float broadcast(const std::byte* value) { return constant(read<float>(value)); }
  static Float add(Float a, Float b) {
    return {vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)};
  }
  static Float mul(Float a, Float b) {
    return {vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)};
  }
  static Float fma(Float a, Float b, Float c) {
    return {vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)};
  }
  static Float fnma(Float a, Float b, Float c) {
    return {vfmsq_f32(c.low, a.low, b.low), vfmsq_f32(c.high, a.high, b.high)};
  }
  static Float to_float(Int x) { return {vcvtq_f32_s32(x.low), vcvtq_f32_s32(x.high)}; }

  static Float load_f16(const std::byte* values) { return widen_f16(read_16(values)); }
  static Float low_bf16(Bytes pairs) {
    const Int lanes = as_int(pairs);
    return as_float({vshlq_n_s32(lanes.low, 16), vshlq_n_s32(lanes.high, 16)});
  }
  static Float high_bf16(Bytes pairs) { return as_float(and_int(as_int(pairs), -0x10000)); }
  /// 2^(e - 127); 0 for e = 0.
  static Float load_exponent(const std::byte* values) {
    const uint16x8_t wide = vmovl_u8(read_8(values));
    return as_float(
        {vreinterpretq_s32_u32(vshlq_n_u32(vmovl_u16(vget_low_u16(wide)), 23)),
         vreinterpretq_s32_u32(vshlq_n_u32(vmovl_high_u16(wide), 23))}
    );
  }
  /// E4M3 * 2^-8: as the upper bits of a half the exponent has the bias 15 instead of 7.
  static Float load_e4m3(const std::byte* values) {
    return widen_f16(vshll_n_u8(read_8(values), 7));
  }

  static Int zero_int() { return {vdupq_n_s32(0), vdupq_n_s32(0)}; }
  static Int load_int(const std::byte* values) { return as_int(load_bytes(values)); }
  static Int load_i8(const std::byte* values) {
    const int16x8_t wide = vmovl_s8(vreinterpret_s8_u8(read_8(values)));
    return {vmovl_s16(vget_low_s16(wide)), vmovl_s16(vget_high_s16(wide))};
  }
  static Int broadcast_int(const std::byte* value) {
    const int32x4_t all = vdupq_n_s32(read<int32_t>(value));
    return {all, all};
  }
  static Int and_int(Int x, int32_t mask) {
    return {vandq_s32(x.low, vdupq_n_s32(mask)), vandq_s32(x.high, vdupq_n_s32(mask))};
  }
  static Int or_int(Int x, Int y) { return {vorrq_s32(x.low, y.low), vorrq_s32(x.high, y.high)}; }
  static Int shift_right_int(Int x, int64_t count) {
    const int32x4_t by = vdupq_n_s32(static_cast<int32_t>(-count));
    return {shift(x.low, by), shift(x.high, by)};
  }
  static Int bits6(Int x, int64_t first) { return and_int(shift_right_int(x, first), 63); }
  /// sum + the dot product of two int16 a lane.
  static Int dot_pairs(Int sum, Int x, Int y) {
    return {
        vaddq_s32(sum.low, pair_products(x.low, y.low)),
        vaddq_s32(sum.high, pair_products(x.high, y.high))};
  }

  static Bytes load_bytes(const std::byte* values) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(values);
    return {vld1q_u8(bytes), vld1q_u8(bytes + 16)};
  }
  static Quad broadcast_quad(const std::byte* value) {
    return vreinterpretq_s8_s32(vdupq_n_s32(read<int32_t>(value)));
  }
  template <int half>
  static Bytes nibbles(Bytes x) {
    if constexpr (half == 0) {
      return and_bytes(x, 0x0F);
    } else {
      return {vshrq_n_u8(x.low, 4), vshrq_n_u8(x.high, 4)};
    }
  }
  /// A nibble left in the upper bits would not fit a signed byte.
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
    const int8x16_t by = vdupq_n_s8(static_cast<int8_t>(4 - bit));
    const Bytes fifth = and_bytes({vshlq_u8(plane.low, by), vshlq_u8(plane.high, by)}, 0x10);
    return {vorrq_u8(nibbles.low, fifth.low), vorrq_u8(nibbles.high, fifth.high)};
  }
  static Bytes low6(Bytes x) { return and_bytes(x, 0x3F); }
  /// The top two bits of three bytes as one 6-bit code, the first on top.
  static Bytes join_top_bits(Bytes b0, Bytes b1, Bytes b2) {
    return {join(b0.low, b1.low, b2.low), join(b0.high, b1.high, b2.high)};
  }

  template <int bias>
  static LevelTable level_table(const std::array<int8_t, 16>& levels) {
    static_assert(bias == 0);
    return vld1q_s8(levels.data());
  }
  static Bytes look_up(LevelTable table, Bytes codes) {
    return {
        vreinterpretq_u8_s8(vqtbl1q_s8(table, codes.low)),
        vreinterpretq_u8_s8(vqtbl1q_s8(table, codes.high))};
  }
  static Bytes biased(Bytes x) { return x; }

  /// Dot product of weights that fit a signed byte and signed activations, four values a lane.
  struct Dot {
    using Acc = Int;
    static constexpr int kRun = 8;  // code vectors between begin and end
    static Acc begin(Int total) { return total; }
    static Acc step(Acc acc, Bytes weights, Quad activations) {
      return {
          vdotq_s32(acc.low, vreinterpretq_s8_u8(weights.low), activations),
          vdotq_s32(acc.high, vreinterpretq_s8_u8(weights.high), activations)};
    }
    static Int end(Int /*total*/, Acc acc) { return acc; }
  };
  template <int largest>
  using UnsignedDot = Dot;
  template <int largest>
  using SignedDot = Dot;

 private:
  template <typename T>
  static T read(const std::byte* bytes) {
    T value;  // NOLINT(cppcoreguidelines-init-variables): filled at once
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  static uint8x8_t read_8(const std::byte* bytes) {
    return vld1_u8(reinterpret_cast<const uint8_t*>(bytes));
  }
  static uint16x8_t read_16(const std::byte* bytes) {
    return vreinterpretq_u16_u8(vld1q_u8(reinterpret_cast<const uint8_t*>(bytes)));
  }
  static Float widen_f16(uint16x8_t halves) {
    const float16x8_t x = vreinterpretq_f16_u16(halves);
    return {vcvt_f32_f16(vget_low_f16(x)), vcvt_high_f32_f16(x)};
  }
  static Int as_int(Bytes x) { return {vreinterpretq_s32_u8(x.low), vreinterpretq_s32_u8(x.high)}; }
  static Float as_float(Int x) {
    return {vreinterpretq_f32_s32(x.low), vreinterpretq_f32_s32(x.high)};
  }
  static Bytes and_bytes(Bytes x, int mask) {
    const uint8x16_t all = vdupq_n_u8(static_cast<uint8_t>(mask));
    return {vandq_u8(x.low, all), vandq_u8(x.high, all)};
  }
  /// A logical shift, to the right by negative counts.
  static int32x4_t shift(int32x4_t x, int32x4_t by) {
    return vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(x), by));
  }
  static int32x4_t pair_products(int32x4_t x, int32x4_t y) {
    const int16x8_t a = vreinterpretq_s16_s32(x);
    const int16x8_t b = vreinterpretq_s16_s32(y);
    return vpaddq_s32(vmull_s16(vget_low_s16(a), vget_low_s16(b)), vmull_high_s16(a, b));
  }
  static uint8x16_t join(uint8x16_t b0, uint8x16_t b1, uint8x16_t b2) {
    const uint8x16_t upper = vsliq_n_u8(vshrq_n_u8(b1, 6), vshrq_n_u8(b0, 6), 2);
    return vsliq_n_u8(vshrq_n_u8(b2, 6), upper, 2);
  }
};

}  // namespace octet::cpu::neon_dotprod
