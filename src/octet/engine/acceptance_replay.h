// Measures drafters against text that the target writes by itself. The target decodes plainly,
// once; every variant drafts at the anchors where it would have drafted had it been in charge, and
// its guesses are compared with what came. Because verification by comparison never changes the
// text, the figures equal those of real drafting, for any number of variants at the price of one
// plain run and their drafts. Not for the ratio rule, whose text depends on the drafts. Invariant:
// a variant's statistics equal those of a Generator run with that drafter and those choices.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "octet/base/token.h"
#include "octet/engine/acceptance_statistics.h"
#include "octet/models/target_model.h"
#include "octet/sampling/sampling_params.h"
#include "octet/speculation/drafter.h"
#include "octet/speculation/proposal.h"

namespace octet {

struct ReplayVariant {
  std::string name;
  Drafter* drafter =
      nullptr;  // all variants' drafters tap the same layers; one may serve several variants
  DraftChoices choices = default_draft_choices();
  int draft_max = kMaxDrafts;
};

struct ReplayRequest {
  std::span<const std::vector<TokenId>> prompts;
  SamplingParams sampling;  // prompt i uses seed + i
  std::vector<TokenId> stop_tokens;
  int64_t max_tokens = 256;  // of one reply
  int64_t enough_tokens =
      0;  // no further prompt once the replies have so many together; 0: all prompts
  KvType kv_type = KvType::kBF16;
};

struct ReplayFigures {
  std::string name;
  AcceptanceStatistics pooled;
  std::vector<AcceptanceStatistics> turns;  // by prompt
};

struct ReplayResult {
  std::vector<ReplayFigures> variants;
  std::vector<std::vector<TokenId>> replies;  // by prompt
};

/// Throws Error(kInvalidArgument) when a prompt is empty or leaves no room in the context,
/// Error(kMismatch) when the variants tap different layers.
ReplayResult replay_acceptance(
    TargetModel& target, std::span<const ReplayVariant> variants, const ReplayRequest& request
);

}  // namespace octet
