// The searches that find good scales for a group of values: what makes ggml's quantizers better
// than dividing by the largest magnitude. Every encoder in types/ that searches uses these; none of
// them knows a block layout. Invariant: bit-exact to the reference (ggml): float32, sums
// in index order, products left to right, no contraction. Vectorising a sum would change bytes of
// published files.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>

namespace octet {

/// Groups are at most this long.
inline constexpr int64_t kMaxGroupValues = 32;
/// Groups whose largest magnitude is below are zero.
inline constexpr float kGroupEpsilon = 1e-15F;

/// Nearest integer, ties to even, for |value| < 2^22; a meaningless but defined integer beyond
/// (callers clamp).
inline int round_to_even(float value) noexcept {
  // At 1.5 * 2^23 the spacing of floats is one, so the addition rounds; the mantissa then holds the
  // integer.
  return (std::bit_cast<int32_t>(value + 12582912.0F) & 0x007FFFFF) - 0x00400000;
}

/// The integer part of `value`, at most max_code; 0 for negative values.
inline uint8_t truncate_to_code(float value, int max_code) noexcept {
  if (!(value > 0.0F)) {
    return 0;
  }
  return value < static_cast<float>(max_code) ? static_cast<uint8_t>(value)
                                              : static_cast<uint8_t>(max_code);
}

/// 1 / value, or 0 where that is not finite: a scale so small does not survive being stored in half
/// precision.
float inverse_or_zero(float value) noexcept;

/// The element of largest magnitude with its sign; the first of equals.
float largest_magnitude(std::span<const float> values) noexcept;

float sum_of_squares(std::span<const float> values) noexcept;

/// importance * sqrt(sigma2 + value^2): how much an error of each value costs.
void importance_weights(
    std::span<const float> values, const float* importance, float sigma2, float* weights
) noexcept;

/// Finds scale and codes for value = scale * (code - limit), code in 0 .. 2 limit - 1. Weights
/// null: value^2. The scale may be negative. Writes values.size() codes.
float search_symmetric(
    std::span<const float> values, int limit, const float* weights, uint8_t* codes
) noexcept;

/// value = scale * code - minimum, minimum >= 0.
struct AffineFit {
  float scale = 0.0F;
  float minimum = 0.0F;
};

/// The trial ranges: (first + step * i + max_code) codes are spread over the group's range, i = 0
/// .. count.
struct AffineTrials {
  float first = 0.0F;
  float step = 0.0F;
  int count = 0;
};
inline constexpr AffineTrials kImportanceTrials{-0.9F, 0.05F, 36};

/// Spreads the codes 0 .. max_code evenly from the smallest value to the largest: no search. The
/// minimum keeps its sign here, so it may be negative.
AffineFit spread_codes(std::span<const float> values, int max_code, uint8_t* codes) noexcept;

/// Finds scale, minimum and codes in 0 .. max_code. Writes values.size() codes.
AffineFit search_affine(
    std::span<const float> values,
    int max_code,
    const float* weights,
    const AffineTrials& trials,
    uint8_t* codes
) noexcept;

/// Finds scale and codes for value = scale * code where no value is negative: quantizes scales
/// themselves.
float search_nonnegative(
    std::span<const float> values, int max_code, const float* weights, uint8_t* codes
) noexcept;

/// The index of the level nearest to `value`, the upper one of two equally near. Levels ascend.
int nearest_level(const std::array<int8_t, 16>& levels, float value) noexcept;

/// Finds the scale for value = scale * level. Zero groups give 0.
float search_levels(
    std::span<const float> values, const std::array<int8_t, 16>& levels, const float* weights
) noexcept;

/// The E2M1 code nearest to value / (2 half_scale); the first of equals, hence never negative zero.
uint8_t nearest_e2m1(float value, float half_scale) noexcept;

}  // namespace octet
