// Activations as W4A4 rounds them, said a second time in float64: by searching all E4M3 and E2M1
// values for the nearest. The oracle for tensor/nvfp4_activations.h and for what calibration sees.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "octet/tensor/types/float_formats.h"
#include "support/weight_oracle.h"

namespace octet::test {

inline double oracle_bf16(float value) {
  return static_cast<double>(bf16_to_f32(f32_to_bf16(value)));
}

inline double nearest_e2m1(double value) {
  double best = 0.0;
  // Ascending with even codes first among equals: 0 1 2 4 are even, 0.5 1.5 3 6 odd.
  for (const double level : {0.0, 1.0, 2.0, 4.0, 0.5, 1.5, 3.0, 6.0}) {
    if (std::fabs(std::fabs(value) - level) < std::fabs(std::fabs(value) - best)) {
      best = level;
    }
  }
  return value < 0.0 ? -best : best;
}

/// E4M3 nearest to a value that is not negative, ties to even, saturating.
inline double nearest_e4m3(float value) {
  double best = 0.0;
  bool best_even = true;
  for (int code = 1; code <= 0x7E; ++code) {
    const double candidate = BlockBits::binary_float(code, 4, 3);
    const double here = std::fabs(static_cast<double>(value) - candidate);
    const double there = std::fabs(static_cast<double>(value) - best);
    if (here < there || (here == there && !best_even)) {
      best = candidate;
      best_even = code % 2 == 0;
    }
  }
  return best;
}

/// One row in W4A4, its input scale included, as servers round it, with reciprocals in float32.
inline std::vector<double> oracle_w4a4_row(const float* row, int64_t cols, float input_scale) {
  std::vector<double> values;
  const float inverse = 1.0F / input_scale;
  for (int64_t first = 0; first < cols; first += 16) {
    double amax = 0.0;
    for (int64_t k = first; k < first + 16; ++k) {
      amax = std::max(amax, std::fabs(oracle_bf16(row[k])));
    }
    const double scale = nearest_e4m3(inverse * (static_cast<float>(amax) * (1.0F / 6.0F)));
    const float factor =
        scale == 0.0 ? 0.0F : 1.0F / (static_cast<float>(scale) * (1.0F / inverse));
    for (int64_t k = first; k < first + 16; ++k) {
      const float scaled = static_cast<float>(oracle_bf16(row[k])) * factor;
      values.push_back(
          nearest_e2m1(static_cast<double>(scaled)) * scale * static_cast<double>(input_scale)
      );
    }
  }
  return values;
}

}  // namespace octet::test
