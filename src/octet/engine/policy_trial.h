// Measures the block policy against plain decoding and against fixed block lengths on real runs:
// the same replies, in turn, a few tokens of each arm at a time, so that a drifting machine treats
// all alike. Beside the drafter's own guesses it can try texts of any acceptance: the drafter works
// as always and is paid for, but its guesses are replaced by right or wrong ones. Not for
// acceptance figures (acceptance_replay.h). Invariant: all arms write the same text, or it throws.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "octet/base/function_ref.h"
#include "octet/base/token.h"
#include "octet/engine/acceptance_statistics.h"
#include "octet/models/target_model.h"
#include "octet/sampling/sampling_params.h"
#include "octet/speculation/drafter.h"

namespace octet {

struct PolicyTrialRequest {
  std::span<const std::vector<TokenId>> prompts;
  SamplingParams sampling;  // prompt i uses seed + i
  std::vector<TokenId> stop_tokens;
  int64_t max_tokens = 128;  // of a reply
  std::vector<int> lengths;  // fixed lengths to compare with, each 1 or more
  int rounds = 3;            // every reply is written so often; the median time of an arm counts
  int64_t turn_tokens = 16;  // an arm writes about so many before the next arm's turn
  /// Probability that a draft is right when those before it are; nullopt: as the drafter guesses.
  std::optional<double> acceptance;
  KvType kv_type = KvType::kBF16;
  /// For the adaptive arm to measure costs before its first reply, as a server does; 0: none.
  double learn_costs_ms = 0.0;
};

struct PolicyArm {
  std::string name;    // "plain", "3 drafts", "adaptive"
  int64_t tokens = 0;  // of decode steps
  double ms = 0.0;     // that they took, drafting included: medians over the rounds, added
  AcceptanceStatistics acceptance;  // of all rounds
  double ms_per_token() const;
};

struct PolicyTrialResult {
  PolicyArm plain;
  std::vector<PolicyArm> fixed;  // in the order asked
  PolicyArm adaptive;
  int64_t kv_bytes = 0;             // of the caches of all arms together
  int64_t draft_context_bytes = 0;  // likewise

  /// Adaptive time a token over that of plain decoding, and over that of the best of plain decoding
  /// and the fixed lengths. Below 1: faster.
  double over_plain() const;
  double over_best() const;
  const PolicyArm& best() const;
};

/// on_reply is called with the number of prompts done.
PolicyTrialResult try_policy(
    TargetModel& target,
    Drafter& drafter,
    const PolicyTrialRequest& request,
    FunctionRef<void(int64_t)> on_reply
);

}  // namespace octet
