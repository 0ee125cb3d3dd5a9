#include "octet/engine/recorded_replay.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/base/error.h"
#include "octet/engine/replay_walk.h"

namespace octet {
namespace {

void check_tokens(const RecordedText& text, int64_t vocabulary) {
  OCTET_CHECK(text.prompt_length >= 1 && text.prompt_length <= std::ssize(text.tokens));
  OCTET_CHECK(text.features.rows >= std::ssize(text.tokens) - 1);
  for (const TokenId token : text.tokens) {
    if (token < 0 || token >= vocabulary) {
      throw Error(
          ErrorKind::kMismatch,
          fmt::format(
              "a recorded text holds the token {}, expected 0 to {}: it was written by another "
              "target",
              token,
              vocabulary - 1
          )
      );
    }
  }
}

/// What the drafter proposes behind `tokens`, of which the last is the anchor.
std::vector<TokenId> drafts_at(
    const ReplayVariant& variant,
    DraftState& state,
    std::span<const TokenId> tokens,
    int64_t room,
    const Sampler& sampler,
    const PenaltyWindow& penalties
) {
  Proposal proposal;
  DraftTask task;
  task.state = &state;
  task.tokens = tokens;
  task.count = static_cast<int>(std::min<int64_t>(
      {int64_t{kMaxDrafts}, room, variant.draft_max, variant.drafter->max_drafts()}
  ));
  task.sampler = &sampler;
  task.penalties = &penalties;
  task.choices = &variant.choices;
  task.out = &proposal;
  if (task.count > 0) {
    variant.drafter->propose({&task, 1});
  }
  return std::move(proposal.tokens);
}

}  // namespace

AcceptanceStatistics replay_recorded(
    const ReplayVariant& variant, const RecordedText& text, const RecordedReplayOptions& options
) {
  check_tokens(text, options.vocabulary);
  const auto length = std::ssize(text.tokens);
  const std::span<const TokenId> tokens = text.tokens;
  const Sampler sampler(text.sampling, options.vocabulary);
  PenaltyWindow penalties(text.sampling, tokens.first(static_cast<size_t>(text.prompt_length)));
  const auto state = variant.drafter->new_state(length + 1);
  int64_t observed = 0;
  int64_t pushed = text.prompt_length;
  ReplayWalk walk;
  walk.anchor = text.prompt_length;  // the first token of the reply comes without drafts
  while (walk.anchor < length - 1) {
    const int64_t anchor = walk.anchor;
    variant.drafter->observe(*state, observed, text.features.slice(observed, anchor - observed));
    observed = anchor;
    for (; pushed <= anchor; ++pushed) {
      penalties.push(tokens[static_cast<size_t>(pushed)]);
    }
    // The target adds a token of its own, so one less than what may still come.
    const int64_t room = text.max_tokens - (anchor + 1 - text.prompt_length) - 1;
    Proposal proposal;
    proposal.tokens = drafts_at(
        variant, *state, tokens.first(static_cast<size_t>(anchor + 1)), room, sampler, penalties
    );
    cut_after_end(proposal, options.stop_tokens);
    walk.drafts = std::move(proposal.tokens);
    if (!walk.settle(tokens)) {
      walk.close(tokens);
    } else if (options.stride > 0) {
      walk.anchor = anchor + options.stride;
    }
  }
  return walk.statistics;
}

}  // namespace octet
