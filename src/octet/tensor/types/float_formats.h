// The small float formats that weights and caches are stored in, each converted to and from float32
// exactly as IEEE 754 (f16, bf16) and the OCP 8-bit and 4-bit formats (E4M3, E2M1) say. Portable
// scalar code for row gathers, encoders and kernel tails; not the place for vector code. Invariant:
// widening is exact; narrowing rounds to nearest, ties to even, and keeps subnormals.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>

namespace octet {

constexpr float f16_to_f32(uint16_t half) noexcept {
  const uint32_t magnitude = half & 0x7FFFU;
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16;
  // With exponent and mantissa in place, the value is too small by the difference of the biases,
  // 2^112. The product is exact, also for subnormal halves.
  const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112F);
  const uint32_t special = 0x7F800000U | (magnitude << 13);  // infinity and NaN
  return std::bit_cast<float>(sign | (magnitude >= 0x7C00U ? special : finite));
}

/// Overflow gives infinity, NaN gives 0x7E00 with its sign.
constexpr uint16_t f32_to_f16(float value) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000U;
  uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) {
    magnitude = 0x7E00U;
  } else if (magnitude >= 0x477FF000U) {  // 65520 and above rounds past the largest half
    magnitude = 0x7C00U;
  } else if (magnitude < 0x38800000U) {
    // Below 2^-14 halves are multiples of 2^-24, the spacing of floats at 0.5: let the addition
    // round.
    magnitude = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) -
                std::bit_cast<uint32_t>(0.5F);
  } else {
    magnitude += 0xFFFU + ((magnitude >> 13) & 1U);
    magnitude = (magnitude >> 13) - (112U << 10);
  }
  return static_cast<uint16_t>(sign | magnitude);
}

constexpr float bf16_to_f32(uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// NaN stays NaN (made quiet).
constexpr uint16_t f32_to_bf16(float value) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) {
    return static_cast<uint16_t>((bits >> 16) | 0x40U);
  }
  return static_cast<uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

/// E4M3 "FN": bias 7, no infinity, largest 448 = 0x7E, 0x7F and 0xFF are NaN.
constexpr float e4m3_to_f32(uint8_t code) noexcept {
  const uint32_t magnitude = code & 0x7FU;
  const uint32_t sign = static_cast<uint32_t>(code & 0x80U) << 24;
  if (magnitude == 0x7FU) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  const float scaled = std::bit_cast<float>(magnitude << 20) * 0x1p120F;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(scaled));
}

/// Saturates at 448; NaN gives 0x7F with its sign.
constexpr uint8_t f32_to_e4m3(float value) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 24) & 0x80U;
  uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) {
    magnitude = 0x7FU;
  } else if (magnitude >= 0x43E00000U) {  // 448 and above
    magnitude = 0x7EU;
  } else if (magnitude < 0x3C800000U) {
    // Below 2^-6 the values are multiples of 2^-9, the spacing of floats at 2^14.
    magnitude = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0x1p14F) -
                std::bit_cast<uint32_t>(0x1p14F);
  } else {
    magnitude += 0x7FFFFU + ((magnitude >> 20) & 1U);
    magnitude = (magnitude >> 20) - (120U << 3);
  }
  return static_cast<uint8_t>(sign | magnitude);
}

/// E2M1: codes 0..7, and 8..15 negated; 8 is negative zero.
inline constexpr std::array<float, 16> kE2M1Values = {
    0.0F,
    0.5F,
    1.0F,
    1.5F,
    2.0F,
    3.0F,
    4.0F,
    6.0F,
    -0.0F,
    -0.5F,
    -1.0F,
    -1.5F,
    -2.0F,
    -3.0F,
    -4.0F,
    -6.0F};

/// What stands for the E2M1 magnitude nearest to |value|: the sum of the steps up to its code,
/// where code c + 1 stands `steps[c]` above code c. Arithmetic alone, so that loops over it become
/// vectors.
constexpr int nearest_e2m1_magnitude(float value, const std::array<int, 7>& steps) noexcept {
  const float a = value < 0.0F ? -value : value;
  // A value halfway between two codes goes to the even one: up at 0.75, 1.75 and 3.5, down
  // elsewhere.
  return steps[0] * static_cast<int>(a > 0.25F) + steps[1] * static_cast<int>(a >= 0.75F) +
         steps[2] * static_cast<int>(a > 1.25F) + steps[3] * static_cast<int>(a >= 1.75F) +
         steps[4] * static_cast<int>(a > 2.5F) + steps[5] * static_cast<int>(a >= 3.5F) +
         steps[6] * static_cast<int>(a > 5.0F);
}

/// Saturates at 6. The sign bit is set only for values below zero, as ModelOpt writes it.
constexpr uint8_t f32_to_e2m1(float value) noexcept {
  const int code = nearest_e2m1_magnitude(value, {1, 1, 1, 1, 1, 1, 1});
  return static_cast<uint8_t>(value < 0.0F ? code | 8 : code);
}

/// Twice the value of that code: 0 +-1 2 3 4 6 8 12.
constexpr int8_t f32_to_doubled_e2m1(float value) noexcept {
  const int magnitude = nearest_e2m1_magnitude(value, {1, 1, 1, 1, 2, 2, 4});
  return static_cast<int8_t>(value < 0.0F ? -magnitude : magnitude);
}

}  // namespace octet
