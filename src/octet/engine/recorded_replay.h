// The acceptance of a drafter on a text whose tokens and features were recorded: no target runs.
// The drafter drafts where it would have drafted in use, or at every so many anchors, and its
// guesses are compared with the tokens that came. Not for texts in the making
// (acceptance_replay.h). Invariant: with the features that the target gave, the statistics equal
// those of a Generator run that wrote this text with this drafter and these choices.
#pragma once

#include <cstdint>
#include <vector>

#include "octet/base/token.h"
#include "octet/engine/acceptance_replay.h"
#include "octet/tensor/rows.h"

namespace octet {

struct RecordedText {
  std::vector<TokenId> tokens;  // prompt and reply
  int64_t prompt_length = 0;
  int64_t max_tokens = 0;  // that the reply might have had
  SamplingParams sampling;
  /// [tokens - 1, taps of the drafter * hidden]: of all but the last token.
  ConstRows features;
};

struct RecordedReplayOptions {
  std::vector<TokenId> stop_tokens;
  int64_t vocabulary = 0;
  int64_t stride = 0;  // anchors so far apart; 0: those that drafting comes to
};

/// Throws Error(kMismatch) where features do not fit the drafter's taps, or a token lies outside
/// the vocabulary.
AcceptanceStatistics replay_recorded(
    const ReplayVariant& variant, const RecordedText& text, const RecordedReplayOptions& options
);

}  // namespace octet
