// Pearson's chi-square test with a stated false-alarm probability. Seeds in tests are fixed, so a
// test built on it either always passes or always fails; the probability says how surprising a
// failure would be for a right sampler.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace octet::test {

/// All chi-square tests of the suite alarm wrongly with this probability: 4.75 standard deviations.
inline constexpr double kFalseAlarmDeviations = 4.7534;  // one-sided 1e-6

/// Standard deviations by which the counts fit worse than expected (Wilson and Hilferty's
/// approximation). Cells that expect fewer than 5 are pooled; counts where nothing may fall give
/// infinity.
inline double misfit(const std::vector<int64_t>& counts, const std::vector<double>& probability) {
  int64_t total = 0;
  for (const int64_t count : counts) {
    total += count;
  }
  double statistic = 0.0;
  double pooled_expected = 0.0;
  double pooled_count = 0.0;
  int cells = 0;
  const auto add = [&](double count, double expected) {
    statistic += (count - expected) * (count - expected) / expected;
    ++cells;
  };
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = probability[i] * static_cast<double>(total);
    if (probability[i] <= 0.0) {
      if (counts[i] > 0) {
        return INFINITY;
      }
    } else if (expected < 5.0) {
      pooled_expected += expected;
      pooled_count += static_cast<double>(counts[i]);
    } else {
      add(static_cast<double>(counts[i]), expected);
    }
  }
  if (pooled_expected >= 1.0) {
    add(pooled_count, pooled_expected);
  }
  const double freedom = std::max(1, cells - 1);
  const double spread = 2.0 / (9.0 * freedom);
  return (std::cbrt(statistic / freedom) - (1.0 - spread)) / std::sqrt(spread);
}

}  // namespace octet::test
