#include "octet/sampling/noise.h"

#include <cmath>

#include "octet/base/philox.h"

namespace octet {
namespace {

// Draws of one purpose and position: tokens by id in the lower half of the index, groups in the
// upper half.
constexpr uint32_t kGroupIndex = 1U << 31U;
constexpr uint32_t kUniformIndex = ~0U;

/// Exp(1). log1p keeps the small times, which decide races, exact to the last bit of the uniform
/// number.
double exponential(uint64_t word) {
  return -std::log1p(-unit_interval(word));
}

}  // namespace

GroupMinimum NoiseField::group_minimum(int64_t group) const {
  const auto words =
      philox_words(seed_, position_, purpose_, kGroupIndex + static_cast<uint32_t>(group));
  static_assert((kNoiseGroup & (kNoiseGroup - 1)) == 0, "the low bits of a word name a member");
  const auto member = static_cast<int64_t>(words[1] % static_cast<uint64_t>(kNoiseGroup));
  return {
      exponential(words[0]) / static_cast<double>(kNoiseGroup),
      static_cast<TokenId>(group * kNoiseGroup + member)};
}

double NoiseField::arrival(TokenId token, const GroupMinimum& minimum) const {
  if (token == minimum.token) {
    return minimum.time;
  }
  const auto words = philox_words(seed_, position_, purpose_, static_cast<uint32_t>(token));
  return minimum.time + exponential(words[0]);
}

double NoiseField::uniform() const {
  return unit_interval(philox_words(seed_, position_, purpose_, kUniformIndex)[0]);
}

}  // namespace octet
