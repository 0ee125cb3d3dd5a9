// A reply as asked for and as given, in tokens: the values that the generator and the engine share.
// Messages, templates and JSON are not here. Invariant: text, tokens and finish reason of a result
// depend on the request alone, not on drafting, company or what a cache held; under the ratio rule
// above temperature 0 also on the drafter and draft_max.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "octet/base/token.h"
#include "octet/engine/acceptance_statistics.h"
#include "octet/sampling/sampling_params.h"
#include "octet/sampling/token_constraint.h"
#include "octet/sampling/token_scores.h"
#include "octet/speculation/cycle.h"
#include "octet/speculation/license.h"
#include "octet/speculation/proposal.h"

namespace octet {

struct GenerateRequest {
  std::vector<TokenId> prompt;  // the whole text so far, begin token included; at least one token
  SamplingParams sampling;      // tokens that the tokenizer suppresses are forbidden as well
  /// End of text, end of turn, ...: all of them. Not given: those of the tokenizer.
  std::optional<std::vector<TokenId>> stop_tokens;
  std::vector<std::string> stop_strings;
  /// They count in speech alone: neither in thoughts nor in calls, nor across one. Else anywhere.
  bool stop_in_speech = false;
  int64_t max_tokens = 512;  // of the reply, exact
  /// No end token among the first so many, and stop strings are looked for behind them.
  int64_t min_tokens = 0;
  int draft_max =
      kMaxDrafts;  // drafts a step, clamped to what the drafter gives; 0: plain decoding
  DraftChoices draft_choices = default_draft_choices();  // for temperature > 0
  bool adapt_drafts =
      true;  // let measured costs and acceptance choose 0 .. draft_max, step by step; not by ratio
  VerifyRule rule = VerifyRule::kCompare;
  const std::atomic<bool>* cancelled = nullptr;  // looked at before each publication
  TokenConstraint* constraint = nullptr;         // has seen nothing of the reply; must outlive it
  int64_t scores = -1;  // likeliest tokens to score beside each published one; -1: no scores
  /// Feed the drafter even when nothing is to be drafted, for later replies on the same text.
  bool keep_draft_context = false;
  /// Places in the prompt that other texts may go on from, such as the end of a system prompt.
  std::vector<int64_t> marks;
};

struct EmittedToken {
  TokenId token = 0;
  bool drafted = false;  // a draft that was accepted; otherwise the target's own
  std::string text;      // text that became printable with it: whole characters, no part of a stop
                         // string, no end token
  std::optional<TokenScores> scores;  // when asked for
};

struct GenerateTimes {
  double prefill_ms = 0.0;  // prompt passes, the first token included
  double decode_ms = 0.0;   // all steps after it
  StepTimes steps;          // sums over the steps of decode_ms
};

struct GenerateResult {
  std::vector<TokenId> tokens;  // the reply; an end token is its last one
  std::vector<bool> drafted;    // by token: origin
  std::string text;             // what the pieces add up to
  FinishReason finish = FinishReason::kNone;
  int64_t prompt_tokens = 0;
  int64_t reused_tokens = 0;  // of the prompt, found in the cache
  AcceptanceStatistics acceptance;
  GenerateTimes times;

  /// Tokens of the decode steps per second; 0 when there was none.
  double tokens_per_second() const;
};

}  // namespace octet
