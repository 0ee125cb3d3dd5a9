// The random numbers of sampling, as pure functions of (seed, position, purpose, token). Each token
// of the vocabulary has an independent Exp(1) arrival time X at each position; the token with the
// least X / p wins, which is the Gumbel trick in other words: argmax(log p - log X) has exactly the
// law p. The times of a group of tokens are built from the group's minimum (Exp(1) / size, at a
// uniformly chosen member; by lack of memory the others are minimum + Exp(1)). So a bound for a
// whole group costs one draw, and a draw over 262,144 tokens touches only the few groups that can
// still win. The law is unchanged. Invariant: values do not depend on the vocabulary's size, on p,
// or on who asks.
#pragma once

#include <cstdint>

#include "octet/base/token.h"

namespace octet {

/// Independent streams of noise. Target and coupled drafts share kToken on purpose; the ratio rule
/// may share none.
enum class NoisePurpose : uint32_t {
  kToken = 1,          // the target's choice, and drafts coupled to it
  kRatioDraft = 2,     // drafts sampled for the ratio rule
  kRatioAccept = 3,    // its acceptance test
  kRatioResidual = 4,  // its draw from the residual
};

inline constexpr int64_t kNoiseGroup = 256;  // tokens of one group

/// The least arrival time of a group and the token that has it.
struct GroupMinimum {
  double time = 0.0;
  TokenId token = 0;
};

class NoiseField {
 public:
  NoiseField(uint64_t seed, int64_t position, NoisePurpose purpose)
      : seed_(seed), position_(position), purpose_(static_cast<uint32_t>(purpose)) {}

  GroupMinimum group_minimum(int64_t group) const;
  /// Arrival time of `token`, given the minimum of its group (token / kNoiseGroup).
  double arrival(TokenId token, const GroupMinimum& minimum) const;
  double arrival(TokenId token) const { return arrival(token, group_minimum(token / kNoiseGroup)); }

  /// One uniform number in (0, 1), independent of the arrival times.
  double uniform() const;

 private:
  uint64_t seed_;
  int64_t position_;
  uint32_t purpose_;
};

}  // namespace octet
