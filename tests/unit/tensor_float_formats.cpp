// Small float formats against an oracle in float64 that knows only exponent bits, mantissa bits and
// bias: every code, every value between neighbours, every tie.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "octet/tensor/types/float_formats.h"
#include "support/random_checkpoint.h"

namespace octet {
namespace {

struct Format {
  int exponent_bits;
  int mantissa_bits;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }

  /// The value of a code without sign by the definition, as if the largest exponent were an
  /// ordinary one.
  double value(uint32_t code) const {
    const uint32_t exponent = code >> mantissa_bits;
    const double mantissa = std::ldexp(code & ((1U << mantissa_bits) - 1U), -mantissa_bits);
    return exponent == 0 ? std::ldexp(mantissa, 1 - bias())
                         : std::ldexp(1.0 + mantissa, static_cast<int>(exponent) - bias());
  }
};

constexpr Format kF16{5, 10};
constexpr Format kBF16{8, 7};
constexpr Format kE4M3{4, 3};
constexpr Format kE2M1{2, 1};

/// The code in 0..last nearest to |value|, the even one of two equally near.
uint32_t nearest_code(const Format& format, uint32_t last, double magnitude) {
  uint32_t low = 0;
  uint32_t high = last;
  while (high - low > 1) {  // value(low) <= magnitude or low == 0, and the like above
    const uint32_t middle = (low + high) / 2;
    (format.value(middle) <= magnitude ? low : high) = middle;
  }
  const double below = magnitude - format.value(low);
  const double above = format.value(high) - magnitude;
  if (below == above) {
    return low % 2 == 0 ? low : high;
  }
  return below < above ? low : high;
}

/// Values around every border between codes of `format` up to `last`, each also negated, and random
/// floats.
std::vector<float> border_values(const Format& format, uint32_t last) {
  std::vector<float> values;
  for (uint32_t code = 0; code <= last; ++code) {
    const auto exact = static_cast<float>(format.value(code));
    const auto middle = static_cast<float>((format.value(code) + format.value(code + 1)) / 2);
    for (const float x : {exact, middle}) {
      for (const float near : {x, std::nextafter(x, 0.0F), std::nextafter(x, 1e30F)}) {
        values.push_back(near);
        values.push_back(-near);
      }
    }
  }
  test::RandomNumbers random(11);
  for (int i = 0; i < 100000; ++i) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(random.bits()));
    if (std::isfinite(x)) {
      values.push_back(x);
    }
  }
  return values;
}

template <typename Narrow>
void expect_rounds_to_nearest(const Format& format, uint32_t last, uint32_t sign, Narrow narrow) {
  for (const float x : border_values(format, last)) {
    const uint32_t magnitude = nearest_code(format, last, std::fabs(static_cast<double>(x)));
    const uint32_t expected = magnitude | (std::signbit(x) ? sign : 0U);
    ASSERT_EQ(static_cast<uint32_t>(narrow(x)), expected) << "for " << x;
  }
}

template <typename Code, typename Widen>
void expect_widens_exactly(const Format& format, uint32_t last, uint32_t sign, Widen widen) {
  for (uint32_t code = 0; code <= last; ++code) {
    ASSERT_EQ(static_cast<double>(widen(static_cast<Code>(code))), format.value(code)) << code;
    const float negative = widen(static_cast<Code>(code | sign));
    ASSERT_EQ(static_cast<double>(negative), -format.value(code)) << code;
    ASSERT_TRUE(std::signbit(negative)) << code;
  }
}

TEST(FloatFormats, F16) {
  constexpr uint32_t kInfinity = 0x7C00;
  expect_widens_exactly<uint16_t>(kF16, kInfinity - 1, 0x8000, f16_to_f32);
  // As IEEE says: what rounds to 2^16 is infinite.
  expect_rounds_to_nearest(kF16, kInfinity, 0x8000, f32_to_f16);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(f16_to_f32(0x7C00), kInf);
  EXPECT_EQ(f16_to_f32(0xFC00), -kInf);
  EXPECT_TRUE(std::isnan(f16_to_f32(0x7E00)));
  EXPECT_EQ(f32_to_f16(-kInf), 0xFC00);
  EXPECT_EQ(f32_to_f16(-std::numeric_limits<float>::quiet_NaN()), 0xFE00);
}

TEST(FloatFormats, BF16) {
  constexpr uint32_t kInfinity = 0x7F80;
  expect_widens_exactly<uint16_t>(kBF16, kInfinity - 1, 0x8000, bf16_to_f32);
  expect_rounds_to_nearest(kBF16, kInfinity, 0x8000, f32_to_bf16);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::infinity()), kInfinity);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7F800001U)))));
}

TEST(FloatFormats, E4M3) {
  constexpr uint32_t kLargest = 0x7E;
  expect_widens_exactly<uint8_t>(kE4M3, kLargest, 0x80, e4m3_to_f32);
  expect_rounds_to_nearest(kE4M3, kLargest, 0x80, f32_to_e4m3);
  EXPECT_TRUE(std::isnan(e4m3_to_f32(0x7F)));
  EXPECT_TRUE(std::isnan(e4m3_to_f32(0xFF)));
  EXPECT_EQ(f32_to_e4m3(std::numeric_limits<float>::infinity()), kLargest);
  EXPECT_EQ(f32_to_e4m3(std::numeric_limits<float>::quiet_NaN()), 0x7F);
}

TEST(FloatFormats, E2M1) {
  for (uint32_t code = 0; code < 8; ++code) {
    EXPECT_EQ(static_cast<double>(kE2M1Values[code]), kE2M1.value(code));
    EXPECT_EQ(kE2M1Values[code + 8], -kE2M1Values[code]);
  }
  for (const float x : border_values(kE2M1, 7)) {
    const uint32_t magnitude = nearest_code(kE2M1, 7, std::fabs(static_cast<double>(x)));
    ASSERT_EQ(f32_to_e2m1(x), magnitude | (x < 0.0F ? 8U : 0U)) << "for " << x;
  }
  EXPECT_EQ(f32_to_e2m1(-0.0F), 0);
}

}  // namespace
}  // namespace octet
