// Searching many groups at once, in vectors of any width, finds what searching one after the other
// finds, bit by bit.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/tensor/lane_search.h"

namespace octet::test {
namespace {

/// Groups of every kind: normal, heavy-tailed, one-sided, constant, zero, tiny, huge, exact ties.
std::vector<float> random_groups(std::mt19937_64& random, size_t groups, size_t values) {
  std::normal_distribution<float> normal;
  std::vector<float> result;
  for (size_t g = 0; g < groups; ++g) {
    const uint64_t kind = random() % 10;
    const float scale = std::ldexp(1.0F, static_cast<int>(random() % 60) - 30);
    for (size_t i = 0; i < values; ++i) {
      float x = normal(random);
      switch (kind) {
        case 0:
          x = 0.0F;
          break;
        case 1:
          x = -1.25F;
          break;
        case 2:
          x = std::fabs(x) + 0.5F;
          break;
        case 3:
          x = x * x * x;
          break;
        case 4:
          x = static_cast<float>(static_cast<int>(random() % 17) - 8) * 0.25F;
          break;
        case 5:
          x = i == 7 ? 3.5F : 0.0F;
          break;
        case 6:
          x = i % 2 == 0 ? -0.0F : 0.0F;
          break;
        case 7:
          x *= 1e-20F;
          break;
        default:
          break;
      }
      result.push_back(x * scale);
    }
  }
  return result;
}

std::vector<float> random_weights(std::mt19937_64& random, size_t count) {
  std::uniform_real_distribution<float> uniform(0.0F, 2.0F);
  std::vector<float> weights(count);
  for (float& w : weights) {
    w = random() % 9 == 0 ? 0.0F : uniform(random);
  }
  return weights;
}

bool same_bits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

class LaneSearches : public testing::TestWithParam<const LaneSearch*> {};

TEST_P(LaneSearches, AffineLanesEqualSingleGroups) {
  constexpr size_t kValues = 32;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    const std::vector<float> values = random_groups(random, kAffineGroups, kValues);
    const std::vector<float> weights = random_weights(random, values.size());
    const int max_code = seed % 2 == 0 ? 15 : 31;
    const AffineTrials trials = seed % 3 == 0 ? kImportanceTrials : AffineTrials{-1.0F, 0.1F, 20};
    std::vector<uint8_t> codes(values.size());
    std::array<AffineFit, kAffineGroups> fits;
    GetParam()->affine(values.data(), max_code, weights.data(), trials, fits.data(), codes.data());
    for (size_t lane = 0; lane < kAffineGroups; ++lane) {
      std::array<uint8_t, kValues> expected{};
      const size_t first = lane * kValues;
      const AffineFit fit = search_affine(
          {values.data() + first, kValues},
          max_code,
          weights.data() + first,
          trials,
          expected.data()
      );
      ASSERT_TRUE(same_bits(fit.scale, fits[lane].scale)) << "seed " << seed << " lane " << lane;
      ASSERT_TRUE(same_bits(fit.minimum, fits[lane].minimum)) << "seed " << seed;
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), codes.begin() + first))
          << "seed " << seed << " lane " << lane;
    }
  }
}

TEST_P(LaneSearches, SymmetricLanesEqualSingleGroups) {
  constexpr size_t kValues = 16;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    const std::vector<float> values = random_groups(random, kSymmetricGroups, kValues);
    const std::vector<float> weights = random_weights(random, values.size());
    const bool weighted = seed % 2 == 0;
    std::vector<uint8_t> codes(values.size());
    std::array<float, kSymmetricGroups> scales{};
    GetParam()->symmetric(
        values.data(), 32, weighted ? weights.data() : nullptr, scales.data(), codes.data()
    );
    for (size_t lane = 0; lane < kSymmetricGroups; ++lane) {
      std::array<uint8_t, kValues> expected{};
      const size_t first = lane * kValues;
      const float scale = search_symmetric(
          {values.data() + first, kValues},
          32,
          weighted ? weights.data() + first : nullptr,
          expected.data()
      );
      ASSERT_TRUE(same_bits(scale, scales[lane])) << "seed " << seed << " lane " << lane;
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), codes.begin() + first))
          << "seed " << seed << " lane " << lane;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Widths,
    LaneSearches,
    testing::ValuesIn(runnable_lane_searches()),
    [](const auto& search) { return std::string(search.param->name); }
);

}  // namespace
}  // namespace octet::test
