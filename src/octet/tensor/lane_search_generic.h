// The searches of lane_search.h for vectors of any width, written with the vector types of GCC and
// Clang. Included by lane_search.cpp and by one file for each instruction set of isa/, which is
// compiled with its machine flags. Invariant: no instruction that fuses roundings
// (-ffp-contract=off), so widths do not change a bit.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "octet/tensor/lane_search.h"

namespace octet {

/// The vectors of one width: their size may not depend on a template parameter everywhere.
template <size_t lanes>
struct VectorTypes;
template <>
struct VectorTypes<4> {
  using Float = float __attribute__((vector_size(16)));
  using Int = int32_t __attribute__((vector_size(16)));
};
template <>
struct VectorTypes<8> {
  using Float = float __attribute__((vector_size(32)));
  using Int = int32_t __attribute__((vector_size(32)));
};
template <>
struct VectorTypes<16> {
  using Float = float __attribute__((vector_size(64)));
  using Int = int32_t __attribute__((vector_size(64)));
};

/// `lanes` groups at a time.
template <size_t lanes>
class LaneSearcher {
 public:
  static void affine(
      const float* values,
      int max_code,
      const float* weights,
      const AffineTrials& trials,
      AffineFit* fits,
      uint8_t* codes
  ) noexcept {
    static_assert(kAffineGroups % lanes == 0);
    for (size_t group = 0; group < kAffineGroups; group += kLanes) {
      const size_t first = group * kAffineValues;
      search_affine_lanes(
          values + first, max_code, weights + first, trials, fits + group, codes + first
      );
    }
  }

  static void symmetric(
      const float* values, int limit, const float* weights, float* scales, uint8_t* codes
  ) noexcept {
    static_assert(kSymmetricGroups % lanes == 0);
    for (size_t group = 0; group < kSymmetricGroups; group += kLanes) {
      const size_t first = group * kSymmetricValues;
      search_symmetric_lanes(
          values + first,
          limit,
          weights == nullptr ? nullptr : weights + first,
          scales + group,
          codes + first
      );
    }
  }

 private:
  static constexpr size_t kLanes = lanes;

  using FloatLanes = typename VectorTypes<lanes>::Float;
  using IntLanes = typename VectorTypes<lanes>::Int;

  static FloatLanes splat(float value) {
    FloatLanes all{};
    for (size_t lane = 0; lane < kLanes; ++lane) {
      all[lane] = value;
    }
    return all;
  }

  static IntLanes splat(int value) {
    IntLanes all{};
    for (size_t lane = 0; lane < kLanes; ++lane) {
      all[lane] = value;
    }
    return all;
  }

  static IntLanes select(IntLanes mask, IntLanes yes, IntLanes no) { return mask ? yes : no; }

  static FloatLanes select(IntLanes mask, FloatLanes yes, FloatLanes no) { return mask ? yes : no; }

  static FloatLanes magnitude(FloatLanes value) {
    return std::bit_cast<FloatLanes>(std::bit_cast<IntLanes>(value) & splat(0x7FFFFFFF));
  }

  static FloatLanes negated(FloatLanes value) {
    return std::bit_cast<FloatLanes>(std::bit_cast<IntLanes>(value) ^ splat(INT32_MIN));
  }

  static FloatLanes to_float(IntLanes value) { return __builtin_convertvector(value, FloatLanes); }

  /// round_to_even, then clamped.
  static IntLanes rounded(FloatLanes value, int low, int high) {
    const auto bits = std::bit_cast<IntLanes>(value + splat(12582912.0F));
    IntLanes code = (bits & splat(0x007FFFFF)) - splat(0x00400000);
    code = code < splat(low) ? splat(low) : code;
    return code > splat(high) ? splat(high) : code;
  }

  /// Groups of n values, side by side.
  template <size_t n>
  struct Columns {
    std::array<FloatLanes, n> rows;

    explicit Columns(const float* groups) {
      for (size_t i = 0; i < n; ++i) {
        for (size_t lane = 0; lane < kLanes; ++lane) {
          rows[i][lane] = groups[lane * n + i];
        }
      }
    }
  };

  template <size_t n>
  using Codes = std::array<IntLanes, n>;

  template <size_t n>
  static void store_codes(const Codes<n>& codes, uint8_t* groups) {
    for (size_t i = 0; i < n; ++i) {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        groups[lane * n + i] = static_cast<uint8_t>(codes[i][lane]);
      }
    }
  }

  template <size_t n>
  static void clear(IntLanes mask, Codes<n>& codes) {
    for (IntLanes& code : codes) {
      code = mask ? splat(0) : code;
    }
  }

  static constexpr size_t kAffineValues = 32;
  using AffineColumns = Columns<kAffineValues>;
  using AffineCodes = Codes<kAffineValues>;
  using AffineLevels = std::array<FloatLanes, kAffineValues>;  // codes as floats

  struct AffineLanes {
    FloatLanes scale;
    FloatLanes minimum;  // subtracted, as in AffineFit
  };

  /// What decides the codes: those of the best trial are computed again instead of being kept.
  struct Spread {
    FloatLanes inverse_scale;
    FloatLanes minimum;

    IntLanes code(FloatLanes x, int max_code) const {
      return rounded(inverse_scale * (x - minimum), 0, max_code);
    }
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

  static FloatLanes affine_error(
      const AffineGroups& groups, const AffineLanes& fit, const AffineLevels& levels
  ) {
    FloatLanes error = splat(0.0F);
    for (size_t i = 0; i < kAffineValues; ++i) {
      const FloatLanes difference = fit.scale * levels[i] - fit.minimum - groups.values.rows[i];
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

  static AffineTrial try_spread(
      const AffineGroups& groups, const Spread& spread, int max_code, AffineLevels& levels
  ) {
    FloatLanes sum_l = splat(0.0F);
    FloatLanes sum_ll = splat(0.0F);
    FloatLanes sum_xl = splat(0.0F);
    for (size_t i = 0; i < kAffineValues; ++i) {
      const FloatLanes l = to_float(spread.code(groups.values.rows[i], max_code));
      levels[i] = l;
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

  static AffineGroups gather(const float* values, const float* weights) {
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

  static constexpr size_t kSymmetricValues = 16;
  using SymmetricColumns = Columns<kSymmetricValues>;
  using SymmetricCodes = Codes<kSymmetricValues>;

  static SymmetricColumns product(const SymmetricColumns& a, const SymmetricColumns& b) {
    SymmetricColumns result = a;
    for (size_t i = 0; i < kSymmetricValues; ++i) {
      result.rows[i] *= b.rows[i];
    }
    return result;
  }

  struct SymmetricGroups {
    SymmetricColumns values;
    SymmetricColumns weights;
    SymmetricColumns weighted = product(weights, values);
  };

  struct SymmetricSums {
    FloatLanes xl = splat(0.0F);
    FloatLanes ll = splat(0.0F);

    FloatLanes best_scale() const { return select(ll != splat(0.0F), xl / ll, splat(0.0F)); }
  };

  static SymmetricSums project(const SymmetricGroups& groups, FloatLanes inverse_scale, int limit) {
    SymmetricSums sums;
    for (size_t i = 0; i < kSymmetricValues; ++i) {
      const FloatLanes l =
          to_float(rounded(inverse_scale * groups.values.rows[i], -limit, limit - 1));
      sums.xl += groups.weighted.rows[i] * l;
      sums.ll += groups.weights.rows[i] * l * l;
    }
    return sums;
  }

  static void search_affine_lanes(
      const float* values,
      int max_code,
      const float* weights,
      const AffineTrials& trials,
      AffineFit* fits,
      uint8_t* codes
  ) noexcept {
    const AffineGroups groups = gather(values, weights);
    const auto most = static_cast<float>(max_code);
    Spread best_spread{splat(most) / (groups.maximum - groups.minimum), groups.minimum};
    AffineLevels levels;
    for (size_t i = 0; i < kAffineValues; ++i) {
      levels[i] = to_float(best_spread.code(groups.values.rows[i], max_code));
    }
    AffineLanes best{splat(1.0F) / best_spread.inverse_scale, negated(groups.minimum)};
    FloatLanes best_error = affine_error(groups, best, levels);
    for (int step = 0; step <= trials.count; ++step) {
      // The reference spreads from the minimum accepted so far, not from the group's own.
      const float codes_here = trials.first + trials.step * static_cast<float>(step) + most;
      const Spread spread{
          splat(codes_here) / (groups.maximum + best.minimum), negated(best.minimum)};
      const AffineTrial trial = try_spread(groups, spread, max_code, levels);
      const FloatLanes error = affine_error(groups, trial.fit, levels);
      const IntLanes better = trial.usable & (error < best_error);
      best_error = select(better, error, best_error);
      best.scale = select(better, trial.fit.scale, best.scale);
      best.minimum = select(better, trial.fit.minimum, best.minimum);
      best_spread.inverse_scale = select(better, spread.inverse_scale, best_spread.inverse_scale);
      best_spread.minimum = select(better, spread.minimum, best_spread.minimum);
    }
    AffineCodes best_codes;
    for (size_t i = 0; i < kAffineValues; ++i) {
      best_codes[i] = best_spread.code(groups.values.rows[i], max_code);
    }
    const IntLanes flat = groups.maximum <= groups.minimum;
    clear(flat, best_codes);
    best.scale = select(flat, splat(0.0F), best.scale);
    best.minimum = select(flat, negated(groups.minimum), best.minimum);
    store_codes(best_codes, codes);
    for (size_t lane = 0; lane < kLanes; ++lane) {
      fits[lane] = {best.scale[lane], best.minimum[lane]};
    }
  }

  static void search_symmetric_lanes(
      const float* values, int limit, const float* weights, float* scales, uint8_t* codes
  ) noexcept {
    const SymmetricColumns columns(values);
    const SymmetricGroups groups{
        columns, weights == nullptr ? product(columns, columns) : SymmetricColumns(weights)};
    FloatLanes largest = splat(0.0F);
    for (const FloatLanes x : columns.rows) {
      largest = select(magnitude(x) > magnitude(largest), x, largest);
    }
    const IntLanes zero = magnitude(largest) < splat(kGroupEpsilon);
    FloatLanes best_inverse = splat(static_cast<float>(-limit)) / largest;
    SymmetricSums sums = project(groups, best_inverse, limit);
    FloatLanes scale = sums.best_scale();
    FloatLanes best = scale * sums.xl;
    for (int step = -9; step <= 9; ++step) {
      if (step == 0) {
        continue;
      }
      const float spread = -(static_cast<float>(limit) + 0.1F * static_cast<float>(step));
      const FloatLanes inverse = splat(spread) / largest;
      sums = project(groups, inverse, limit);
      const IntLanes better = (sums.ll > splat(0.0F)) & (sums.xl * sums.xl > best * sums.ll);
      best_inverse = select(better, inverse, best_inverse);
      scale = select(better, sums.best_scale(), scale);
      best = select(better, sums.best_scale() * sums.xl, best);
    }
    SymmetricCodes best_codes;
    for (size_t i = 0; i < kSymmetricValues; ++i) {
      best_codes[i] = rounded(best_inverse * columns.rows[i], -limit, limit - 1) + splat(limit);
    }
    clear(zero, best_codes);
    scale = select(zero, splat(0.0F), scale);
    store_codes(best_codes, codes);
    for (size_t lane = 0; lane < kLanes; ++lane) {
      scales[lane] = scale[lane];
    }
  }
};

}  // namespace octet
