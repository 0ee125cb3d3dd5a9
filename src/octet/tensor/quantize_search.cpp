#include "octet/tensor/quantize_search.h"

#include <algorithm>
#include <cmath>

#include "octet/tensor/types/float_formats.h"

namespace octet {

namespace {

using GroupCodes = std::array<uint8_t, kMaxGroupValues>;

/// Weighted sums of a trial in which every value x has become an integer l.
struct Projection {
  float xl = 0.0F;  // sum of weight * x * l
  float ll = 0.0F;  // sum of weight * l * l

  float best_scale() const { return ll != 0.0F ? xl / ll : 0.0F; }
};

int clamped_code(float value, int low, int high) {
  return std::clamp(round_to_even(value), low, high);
}

Projection project_symmetric(
    std::span<const float> values,
    float inverse_scale,
    int limit,
    const float* weights,
    uint8_t* codes
) {
  Projection sums;
  for (size_t i = 0; i < values.size(); ++i) {
    const float x = values[i];
    const int code = clamped_code(inverse_scale * x, -limit, limit - 1);
    const auto l = static_cast<float>(code);
    const float w = weights != nullptr ? weights[i] : x * x;
    sums.xl += w * x * l;
    sums.ll += w * l * l;
    codes[i] = static_cast<uint8_t>(code + limit);
  }
  return sums;
}

Projection project_levels(
    std::span<const float> values,
    float inverse_scale,
    const std::array<int8_t, 16>& levels,
    const float* weights
) {
  Projection sums;
  for (size_t i = 0; i < values.size(); ++i) {
    const float x = values[i];
    const auto q =
        static_cast<float>(levels[static_cast<size_t>(nearest_level(levels, inverse_scale * x))]);
    sums.xl += weights[i] * q * x;
    sums.ll += weights[i] * q * q;
  }
  return sums;
}

/// Weighted squared error of value = scale * code + minimum.
float affine_error(
    std::span<const float> values, const float* weights, const AffineFit& fit, const uint8_t* codes
) {
  float error = 0.0F;
  for (size_t i = 0; i < values.size(); ++i) {
    const float difference = fit.scale * static_cast<float>(codes[i]) - fit.minimum - values[i];
    error += weights[i] * (difference * difference);
  }
  return error;
}

void affine_codes(
    std::span<const float> values, float inverse_scale, float minimum, int max_code, uint8_t* codes
) {
  for (size_t i = 0; i < values.size(); ++i) {
    codes[i] =
        static_cast<uint8_t>(clamped_code(inverse_scale * (values[i] - minimum), 0, max_code));
  }
}

/// The weighted linear regression of values on codes.
class Regression {
 public:
  Regression(std::span<const float> values, const float* weights)
      : values_(values), weights_(weights) {
    for (size_t i = 0; i < values.size(); ++i) {
      sum_w_ += weights[i];
      sum_x_ += weights[i] * values[i];
    }
  }

  /// False when the codes do not vary enough to fit a line.
  bool fit(const uint8_t* codes, AffineFit* result) const {
    float sum_l = 0.0F;
    float sum_ll = 0.0F;
    float sum_xl = 0.0F;
    for (size_t i = 0; i < values_.size(); ++i) {
      const auto l = static_cast<float>(codes[i]);
      const float wl = weights_[i] * l;
      sum_l += wl;
      sum_ll += wl * l;
      sum_xl += wl * values_[i];
    }
    const float determinant = sum_w_ * sum_ll - sum_l * sum_l;
    if (!(determinant > 0.0F)) {
      return false;
    }
    float scale = (sum_w_ * sum_xl - sum_x_ * sum_l) / determinant;
    float minimum = (sum_ll * sum_x_ - sum_l * sum_xl) / determinant;
    if (minimum > 0.0F) {  // the format cannot shift upwards: fit a line through zero
      minimum = 0.0F;
      scale = sum_xl / sum_ll;
    }
    *result = {scale, -minimum};
    return true;
  }

 private:
  std::span<const float> values_;
  const float* weights_;
  float sum_w_ = 0.0F;
  float sum_x_ = 0.0F;
};

/// The inverse scale with the least weighted squared error among 1 + 8 spreads of the codes.
float best_nonnegative_inverse_scale(
    std::span<const float> values, int max_code, const float* weights, float largest
) {
  const auto error_of = [&](float inverse_scale) {
    const float scale = 1.0F / inverse_scale;
    float error = 0.0F;
    for (size_t i = 0; i < values.size(); ++i) {
      const int code = std::min(max_code, round_to_even(inverse_scale * values[i]));
      const float difference = values[i] - scale * static_cast<float>(code);
      error += weights[i] * difference * difference;
    }
    return error;
  };
  const auto spread = static_cast<float>(max_code);
  float best = spread / largest;
  float best_error = error_of(best);
  for (int step = -4; step <= 4; ++step) {
    if (step == 0) {
      continue;
    }
    const float inverse_scale = (0.1F * static_cast<float>(step) + spread) / largest;
    const float error = error_of(inverse_scale);
    if (error < best_error) {
      best_error = error;
      best = inverse_scale;
    }
  }
  return best;
}

/// One sweep of coordinate descent: moves each code to where the others want it, if that helps.
bool improve_nonnegative_codes(
    std::span<const float> values,
    int max_code,
    const float* weights,
    uint8_t* codes,
    Projection* sums
) {
  bool changed = false;
  for (size_t i = 0; i < values.size(); ++i) {
    const float x = values[i];
    const float w = weights[i];
    const auto old_l = static_cast<float>(codes[i]);
    Projection trial{sums->xl - w * x * old_l, sums->ll - w * old_l * old_l};
    if (!(trial.xl > 0.0F && trial.ll > 0.0F)) {
      continue;
    }
    const int code = clamped_code(x * trial.ll / trial.xl, 0, max_code);
    if (code == codes[i]) {
      continue;
    }
    const auto l = static_cast<float>(code);
    trial.xl += w * x * l;
    trial.ll += w * l * l;
    if (trial.xl * trial.xl * sums->ll > sums->xl * sums->xl * trial.ll) {
      codes[i] = static_cast<uint8_t>(code);
      *sums = trial;
      changed = true;
    }
  }
  return changed;
}

}  // namespace

float inverse_or_zero(float value) noexcept {
  const float inverse = 1.0F / value;
  return std::isfinite(inverse) ? inverse : 0.0F;
}

float largest_magnitude(std::span<const float> values) noexcept {
  float largest = 0.0F;
  for (const float x : values) {
    if (std::fabs(x) > std::fabs(largest)) {
      largest = x;
    }
  }
  return largest;
}

float sum_of_squares(std::span<const float> values) noexcept {
  float sum = 0.0F;
  for (const float x : values) {
    sum += x * x;
  }
  return sum;
}

void importance_weights(
    std::span<const float> values, const float* importance, float sigma2, float* weights
) noexcept {
  for (size_t i = 0; i < values.size(); ++i) {
    weights[i] = importance[i] * std::sqrt(sigma2 + values[i] * values[i]);
  }
}

float search_symmetric(
    std::span<const float> values, int limit, const float* weights, uint8_t* codes
) noexcept {
  const float largest = largest_magnitude(values);
  if (std::fabs(largest) < kGroupEpsilon) {
    std::fill_n(codes, values.size(), uint8_t{0});
    return 0.0F;
  }
  Projection sums =
      project_symmetric(values, static_cast<float>(-limit) / largest, limit, weights, codes);
  float scale = sums.best_scale();
  float best = scale * sums.xl;
  GroupCodes trial_codes{};
  for (int step = -9; step <= 9; ++step) {
    if (step == 0) {
      continue;
    }
    const float inverse_scale =
        -(static_cast<float>(limit) + 0.1F * static_cast<float>(step)) / largest;
    sums = project_symmetric(values, inverse_scale, limit, weights, trial_codes.data());
    if (sums.ll > 0.0F && sums.xl * sums.xl > best * sums.ll) {
      std::copy_n(trial_codes.begin(), values.size(), codes);
      scale = sums.best_scale();
      best = scale * sums.xl;
    }
  }
  return scale;
}

AffineFit spread_codes(std::span<const float> values, int max_code, uint8_t* codes) noexcept {
  const auto [minimum, maximum] = std::minmax_element(values.begin(), values.end());
  const float scale = (*maximum - *minimum) / static_cast<float>(max_code);
  const float inverse = inverse_or_zero(scale);
  for (size_t i = 0; i < values.size(); ++i) {
    codes[i] = truncate_to_code((values[i] - *minimum) * inverse + 0.5F, max_code);
  }
  return {scale, -*minimum};
}

AffineFit search_affine(
    std::span<const float> values,
    int max_code,
    const float* weights,
    const AffineTrials& trials,
    uint8_t* codes
) noexcept {
  const float maximum = *std::max_element(values.begin(), values.end());
  float minimum = *std::min_element(values.begin(), values.end());
  if (minimum > 0.0F) {
    minimum = 0.0F;
  }
  if (maximum <= minimum) {
    std::fill_n(codes, values.size(), uint8_t{0});
    return {0.0F, -minimum};
  }
  const auto spread = static_cast<float>(max_code);
  const float inverse_scale = spread / (maximum - minimum);
  affine_codes(values, inverse_scale, minimum, max_code, codes);
  AffineFit best{1.0F / inverse_scale, -minimum};
  float best_error = affine_error(values, weights, best, codes);

  const Regression regression(values, weights);
  GroupCodes trial_codes{};
  for (int step = 0; step <= trials.count; ++step) {
    // The reference spreads from the minimum accepted so far, not from the group's own.
    const float spread_here = trials.first + trials.step * static_cast<float>(step) + spread;
    affine_codes(
        values, spread_here / (maximum + best.minimum), -best.minimum, max_code, trial_codes.data()
    );
    AffineFit fit;
    if (!regression.fit(trial_codes.data(), &fit)) {
      continue;
    }
    const float error = affine_error(values, weights, fit, trial_codes.data());
    if (error < best_error) {
      std::copy_n(trial_codes.begin(), values.size(), codes);
      best_error = error;
      best = fit;
    }
  }
  return best;
}

float search_nonnegative(
    std::span<const float> values, int max_code, const float* weights, uint8_t* codes
) noexcept {
  const float largest = std::max(0.0F, *std::max_element(values.begin(), values.end()));
  if (largest < kGroupEpsilon) {
    std::fill_n(codes, values.size(), uint8_t{0});
    return 0.0F;
  }
  const float inverse_scale = best_nonnegative_inverse_scale(values, max_code, weights, largest);
  Projection sums;
  for (size_t i = 0; i < values.size(); ++i) {
    const int code = clamped_code(inverse_scale * values[i], 0, max_code);
    const auto l = static_cast<float>(code);
    sums.xl += weights[i] * values[i] * l;
    sums.ll += weights[i] * l * l;
    codes[i] = static_cast<uint8_t>(code);
  }
  constexpr int kMaxSweeps = 5;
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    if (!improve_nonnegative_codes(values, max_code, weights, codes, &sums)) {
      break;
    }
  }
  return sums.ll > 0.0F ? sums.xl / sums.ll : 0.0F;
}

int nearest_level(const std::array<int8_t, 16>& levels, float value) noexcept {
  const auto level = [&](int i) { return static_cast<float>(levels[static_cast<size_t>(i)]); };
  if (value <= level(0)) {
    return 0;
  }
  int lower = 0;
  int upper = 15;
  if (value >= level(upper)) {
    return upper;
  }
  while (upper - lower > 1) {
    const int middle = (lower + upper) / 2;
    if (value < level(middle)) {
      upper = middle;
    } else {
      lower = middle;
    }
  }
  return value - level(lower) < level(upper) - value ? lower : upper;
}

float search_levels(
    std::span<const float> values, const std::array<int8_t, 16>& levels, const float* weights
) noexcept {
  const float largest = largest_magnitude(values);
  if (std::fabs(largest) < kGroupEpsilon) {
    return 0.0F;
  }
  const auto first_level = static_cast<float>(levels[0]);
  const float start = -largest / first_level;
  Projection sums = project_levels(values, 1.0F / start, levels, weights);
  float scale = sums.best_scale();
  float best = scale * sums.xl;
  for (int step = -7; step <= 7; ++step) {
    const float inverse_scale = (static_cast<float>(step) + first_level) / largest;
    sums = project_levels(values, inverse_scale, levels, weights);
    if (sums.ll > 0.0F && sums.xl * sums.xl > best * sums.ll) {
      scale = sums.best_scale();
      best = scale * sums.xl;
    }
  }
  return scale;
}

uint8_t nearest_e2m1(float value, float half_scale) noexcept {
  size_t best = 0;
  float best_error = std::fabs(value);
  for (size_t code = 1; code < kE2M1Values.size(); ++code) {
    const float error = std::fabs(2.0F * kE2M1Values[code] * half_scale - value);
    if (error < best_error) {
      best = code;
      best_error = error;
    }
  }
  return static_cast<uint8_t>(best);
}

}  // namespace octet
