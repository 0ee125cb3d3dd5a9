// Philox4x32-10, the counter-based random number generator: the value is a pure function of key and
// counter, so there is no state to advance, to save or to roll back. Draws that are thrown away
// cannot disturb later ones. Not for secrets. Invariant: equal (seed, position, purpose, index)
// give equal bits on every machine. Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers:
// as easy as 1, 2, 3" (SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace octet {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

/// Ten rounds of the Philox4x32 bijection.
constexpr PhiloxCounter philox4x32_10(PhiloxCounter counter, PhiloxKey key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9;
  constexpr uint32_t kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {
        static_cast<uint32_t>(product1 >> 32U) ^ counter[1] ^ key[0],
        static_cast<uint32_t>(product1),
        static_cast<uint32_t>(product0 >> 32U) ^ counter[3] ^ key[1],
        static_cast<uint32_t>(product0),
    };
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

/// Two independent uniform 64-bit words for draw `index` of `purpose` at `position` of the text of
/// `seed`.
constexpr std::array<uint64_t, 2> philox_words(
    uint64_t seed, int64_t position, uint32_t purpose, uint32_t index
) {
  const auto place = static_cast<uint64_t>(position);
  const PhiloxCounter out = philox4x32_10(
      {index, purpose, static_cast<uint32_t>(place), static_cast<uint32_t>(place >> 32U)},
      {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32U)}
  );
  return {
      (static_cast<uint64_t>(out[1]) << 32U) | out[0],
      (static_cast<uint64_t>(out[3]) << 32U) | out[2],
  };
}

/// The open interval (0, 1) in steps of 2^-52, never 0 and never 1: with one more bit the half
/// would round up to 1.
constexpr double unit_interval(uint64_t word) {
  return (static_cast<double>(word >> 12U) + 0.5) * 0x1p-52;
}

}  // namespace octet
