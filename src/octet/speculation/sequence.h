// One text in the making, as the verify cycle sees it: tokens, the target's cache, the drafter's
// state, how to choose and when to end. Plain data; the cycle is the only writer while the sequence
// runs. Invariant between cycles, once the prompt is processed: cache->length() == tokens.size() -
// 1 (the anchor is published but not yet in the cache).
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "octet/base/token.h"
#include "octet/models/target_model.h"
#include "octet/sampling/penalty_window.h"
#include "octet/sampling/sampler.h"
#include "octet/sampling/token_constraint.h"
#include "octet/sampling/token_scores.h"
#include "octet/speculation/block_policy.h"
#include "octet/speculation/drafter.h"
#include "octet/speculation/license.h"
#include "octet/speculation/proposal.h"

namespace octet {

/// Other texts leave a prompt a little before its end, too: templates open a reply in ways that a
/// history does not repeat.
inline constexpr int64_t kMarkSlack = 32;

struct Sequence {
  std::vector<TokenId> tokens;  // prompt, then what was published
  int64_t prompt_length = 0;
  std::unique_ptr<SequenceCache> cache;
  std::unique_ptr<DraftState> draft_state;

  std::shared_ptr<const Sampler> sampler;
  PenaltyWindow penalties;
  VerifyRule rule = VerifyRule::kCompare;
  int draft_max = kMaxDrafts;     // most of a step; 0: plain decoding
  BlockPolicy* policy = nullptr;  // how many pay, step by step; null: always draft_max
  int planned_drafts = -1;  // of the next step, by whoever plans for company; -1: the policy says
  /// Features are observed even in steps without drafts, so that later ones find their context.
  /// False: no draft will be wanted for this reply, spare the work.
  bool feed_drafter = true;
  DraftChoices draft_choices = default_draft_choices();

  TokenConstraint* constraint = nullptr;  // has seen what it needs of the prompt, then the reply
  int64_t scores = -1;  // likeliest tokens wanted beside each published one; -1: no scores
  std::vector<TokenScores> published_scores;  // of the last step's tokens, when wanted

  int64_t chunk_rows = std::numeric_limits<int64_t>::max();  // most prompt rows of the next step
  /// Places in the prompt, ascending, that other texts may continue from: chunks end there, and the
  /// drafter is fed what a draft there, or up to kMarkSlack before it, would see.
  std::vector<int64_t> marks;

  std::vector<TokenId> stop_tokens;
  int64_t max_tokens = 0;      // of the reply
  int64_t context_length = 0;  // most tokens of prompt and reply together
  StopWatch* stop_watch = nullptr;
  const std::atomic<bool>* cancelled = nullptr;

  FinishReason finish = FinishReason::kNone;

  int64_t length() const { return static_cast<int64_t>(tokens.size()); }
  int64_t reply_length() const { return length() - prompt_length; }
  int64_t unprocessed() const { return length() - cache->length(); }  // 1 when decoding
};

}  // namespace octet
