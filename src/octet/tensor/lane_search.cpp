#include "octet/tensor/lane_search.h"

#include <bit>
#include <cstddef>

namespace octet {

namespace {

// Vectors of the baseline of every 64-bit CPU: no instruction set needs to be chosen.
using FloatLanes = float __attribute__((vector_size(16)));
using IntLanes = int32_t __attribute__((vector_size(16)));

constexpr size_t kLanes = kSearchLanes;

FloatLanes splat(float value) {
  return FloatLanes{value, value, value, value};
}

IntLanes splat(int value) {
  return IntLanes{value, value, value, value};
}

IntLanes select(IntLanes mask, IntLanes yes, IntLanes no) {
  return (mask & yes) | (~mask & no);
}

FloatLanes select(IntLanes mask, FloatLanes yes, FloatLanes no) {
  return std::bit_cast<FloatLanes>(
      select(mask, std::bit_cast<IntLanes>(yes), std::bit_cast<IntLanes>(no))
  );
}

FloatLanes magnitude(FloatLanes value) {
  return std::bit_cast<FloatLanes>(std::bit_cast<IntLanes>(value) & splat(0x7FFFFFFF));
}

FloatLanes negated(FloatLanes value) {
  return std::bit_cast<FloatLanes>(std::bit_cast<IntLanes>(value) ^ splat(INT32_MIN));
}

FloatLanes to_float(IntLanes value) {
  return __builtin_convertvector(value, FloatLanes);
}

/// round_to_even, then clamped.
IntLanes rounded(FloatLanes value, int low, int high) {
  const auto bits = std::bit_cast<IntLanes>(value + splat(12582912.0F));
  IntLanes code = (bits & splat(0x007FFFFF)) - splat(0x00400000);
  code = select(code < splat(low), splat(low), code);
  return select(code > splat(high), splat(high), code);
}

/// Four groups of n values, side by side.
template <size_t n>
struct Columns {
  std::array<FloatLanes, n> rows;

  explicit Columns(const float* groups) {
    for (size_t i = 0; i < n; ++i) {
      rows[i] = FloatLanes{groups[i], groups[n + i], groups[2 * n + i], groups[3 * n + i]};
    }
  }
};

template <size_t n>
using Codes = std::array<IntLanes, n>;

template <size_t n>
void store_codes(const Codes<n>& codes, uint8_t* groups) {
  for (size_t i = 0; i < n; ++i) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      groups[lane * n + i] = static_cast<uint8_t>(codes[i][lane]);
    }
  }
}

template <size_t n>
void accept(IntLanes mask, const Codes<n>& trial, Codes<n>& best) {
  for (size_t i = 0; i < n; ++i) {
    best[i] = select(mask, trial[i], best[i]);
  }
}

constexpr size_t kAffineValues = 32;
using AffineColumns = Columns<kAffineValues>;
using AffineCodes = Codes<kAffineValues>;

struct AffineLanes {
  FloatLanes scale;
  FloatLanes minimum;  // subtracted, as in AffineFit
};

/// What does not change from trial to trial.
struct AffineGroups {
  AffineColumns values;
  AffineColumns weights;
  FloatLanes sum_w = splat(0.0F);
  FloatLanes sum_x = splat(0.0F);
  FloatLanes maximum = splat(0.0F);
  FloatLanes minimum = splat(0.0F);
};

FloatLanes affine_error(
    const AffineGroups& groups, const AffineLanes& fit, const AffineCodes& codes
) {
  FloatLanes error = splat(0.0F);
  for (size_t i = 0; i < kAffineValues; ++i) {
    const FloatLanes difference =
        fit.scale * to_float(codes[i]) - fit.minimum - groups.values.rows[i];
    error += groups.weights.rows[i] * (difference * difference);
  }
  return error;
}

/// Regression of values on the codes of one spread; lanes whose codes do not vary are left out of
/// the mask.
struct AffineTrial {
  AffineLanes fit;
  IntLanes usable;
};

AffineTrial try_spread(
    const AffineGroups& groups,
    FloatLanes inverse_scale,
    FloatLanes minimum,
    int max_code,
    AffineCodes& codes
) {
  FloatLanes sum_l = splat(0.0F);
  FloatLanes sum_ll = splat(0.0F);
  FloatLanes sum_xl = splat(0.0F);
  for (size_t i = 0; i < kAffineValues; ++i) {
    codes[i] = rounded(inverse_scale * (groups.values.rows[i] - minimum), 0, max_code);
    const FloatLanes l = to_float(codes[i]);
    const FloatLanes wl = groups.weights.rows[i] * l;
    sum_l += wl;
    sum_ll += wl * l;
    sum_xl += wl * groups.values.rows[i];
  }
  const FloatLanes determinant = groups.sum_w * sum_ll - sum_l * sum_l;
  const FloatLanes scale = (groups.sum_w * sum_xl - groups.sum_x * sum_l) / determinant;
  const FloatLanes shift = (sum_ll * groups.sum_x - sum_l * sum_xl) / determinant;
  const IntLanes upwards = shift > splat(0.0F);  // the format cannot: fit a line through zero
  AffineTrial trial;
  trial.usable = determinant > splat(0.0F);
  trial.fit.scale = select(upwards, sum_xl / sum_ll, scale);
  trial.fit.minimum = negated(select(upwards, splat(0.0F), shift));
  return trial;
}

AffineGroups gather(const float* values, const float* weights) {
  AffineGroups groups{.values = AffineColumns(values), .weights = AffineColumns(weights)};
  groups.maximum = groups.values.rows[0];
  groups.minimum = groups.values.rows[0];
  for (size_t i = 0; i < kAffineValues; ++i) {
    const FloatLanes x = groups.values.rows[i];
    groups.maximum = select(groups.maximum < x, x, groups.maximum);
    groups.minimum = select(x < groups.minimum, x, groups.minimum);
    groups.sum_w += groups.weights.rows[i];
    groups.sum_x += groups.weights.rows[i] * x;
  }
  groups.minimum = select(groups.minimum > splat(0.0F), splat(0.0F), groups.minimum);
  return groups;
}

constexpr size_t kSymmetricValues = 16;
using SymmetricColumns = Columns<kSymmetricValues>;
using SymmetricCodes = Codes<kSymmetricValues>;

struct SymmetricSums {
  FloatLanes xl = splat(0.0F);
  FloatLanes ll = splat(0.0F);

  FloatLanes best_scale() const { return select(ll != splat(0.0F), xl / ll, splat(0.0F)); }
};

SymmetricSums project(
    const SymmetricColumns& values,
    const SymmetricColumns& weights,
    FloatLanes inverse_scale,
    int limit,
    SymmetricCodes& codes
) {
  SymmetricSums sums;
  for (size_t i = 0; i < kSymmetricValues; ++i) {
    const FloatLanes x = values.rows[i];
    const IntLanes code = rounded(inverse_scale * x, -limit, limit - 1);
    const FloatLanes l = to_float(code);
    sums.xl += weights.rows[i] * x * l;
    sums.ll += weights.rows[i] * l * l;
    codes[i] = code + splat(limit);
  }
  return sums;
}

SymmetricColumns squares(const SymmetricColumns& values) {
  SymmetricColumns result = values;
  for (FloatLanes& x : result.rows) {
    x *= x;
  }
  return result;
}

}  // namespace

std::array<AffineFit, kSearchLanes> search_affine_lanes(
    const float* values,
    int max_code,
    const float* weights,
    const AffineTrials& trials,
    uint8_t* codes
) noexcept {
  const AffineGroups groups = gather(values, weights);
  const auto spread = static_cast<float>(max_code);
  const FloatLanes inverse_scale = splat(spread) / (groups.maximum - groups.minimum);
  AffineCodes best_codes{};
  for (size_t i = 0; i < kAffineValues; ++i) {
    best_codes[i] = rounded(inverse_scale * (groups.values.rows[i] - groups.minimum), 0, max_code);
  }
  AffineLanes best{splat(1.0F) / inverse_scale, negated(groups.minimum)};
  FloatLanes best_error = affine_error(groups, best, best_codes);
  AffineCodes trial_codes{};
  for (int step = 0; step <= trials.count; ++step) {
    // The reference spreads from the minimum accepted so far, not from the group's own.
    const float spread_here = trials.first + trials.step * static_cast<float>(step) + spread;
    const AffineTrial trial = try_spread(
        groups,
        splat(spread_here) / (groups.maximum + best.minimum),
        negated(best.minimum),
        max_code,
        trial_codes
    );
    const FloatLanes error = affine_error(groups, trial.fit, trial_codes);
    const IntLanes better = trial.usable & (error < best_error);
    accept(better, trial_codes, best_codes);
    best_error = select(better, error, best_error);
    best.scale = select(better, trial.fit.scale, best.scale);
    best.minimum = select(better, trial.fit.minimum, best.minimum);
  }
  const IntLanes flat = groups.maximum <= groups.minimum;
  accept(flat, AffineCodes{}, best_codes);
  best.scale = select(flat, splat(0.0F), best.scale);
  best.minimum = select(flat, negated(groups.minimum), best.minimum);
  store_codes(best_codes, codes);
  std::array<AffineFit, kSearchLanes> fits;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    fits[lane] = {best.scale[lane], best.minimum[lane]};
  }
  return fits;
}

std::array<float, kSearchLanes> search_symmetric_lanes(
    const float* values, int limit, const float* weights, uint8_t* codes
) noexcept {
  const SymmetricColumns columns(values);
  const SymmetricColumns column_weights =
      weights == nullptr ? squares(columns) : SymmetricColumns(weights);
  FloatLanes largest = splat(0.0F);
  for (const FloatLanes x : columns.rows) {
    largest = select(magnitude(x) > magnitude(largest), x, largest);
  }
  const IntLanes zero = magnitude(largest) < splat(kGroupEpsilon);
  SymmetricCodes best_codes{};
  SymmetricSums sums = project(
      columns, column_weights, splat(static_cast<float>(-limit)) / largest, limit, best_codes
  );
  FloatLanes scale = sums.best_scale();
  FloatLanes best = scale * sums.xl;
  SymmetricCodes trial_codes{};
  for (int step = -9; step <= 9; ++step) {
    if (step == 0) {
      continue;
    }
    const float spread = -(static_cast<float>(limit) + 0.1F * static_cast<float>(step));
    sums = project(columns, column_weights, splat(spread) / largest, limit, trial_codes);
    const IntLanes better = (sums.ll > splat(0.0F)) & (sums.xl * sums.xl > best * sums.ll);
    accept(better, trial_codes, best_codes);
    scale = select(better, sums.best_scale(), scale);
    best = select(better, sums.best_scale() * sums.xl, best);
  }
  accept(zero, SymmetricCodes{}, best_codes);
  scale = select(zero, splat(0.0F), scale);
  store_codes(best_codes, codes);
  std::array<float, kSearchLanes> scales{};
  for (size_t lane = 0; lane < kLanes; ++lane) {
    scales[lane] = scale[lane];
  }
  return scales;
}

}  // namespace octet
