// Runs sequences to their end through the verify cycle, for tests of speculation/ and engine/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "octet/speculation/cycle.h"
#include "octet/speculation/sequence.h"

namespace octet::test {

struct RunSettings {
  std::vector<TokenId> prompt = {0};
  SamplingParams sampling;
  VerifyRule rule = VerifyRule::kCompare;
  int draft_max = kMaxDrafts;
  bool adapt_drafts = false;  // a block policy chooses how many of draft_max are verified
  DraftChoices draft_choices = default_draft_choices();
  std::vector<TokenId> stop_tokens;
  int64_t max_tokens = 40;
  int64_t context_length = 100000;
};

struct RunResult {
  std::vector<TokenId> reply;
  FinishReason finish = FinishReason::kNone;
  std::vector<SequenceStep> steps;
};

/// Texts are equal token by token and end for the same reason; how many steps it took may differ.
inline bool operator==(const RunResult& a, const RunResult& b) {
  return a.reply == b.reply && a.finish == b.finish;
}

inline std::unique_ptr<Sequence> new_sequence(
    const TargetModel& target,
    const Drafter& drafter,
    const RunSettings& settings,
    StopWatch* watch = nullptr
) {
  auto sequence = std::make_unique<Sequence>();
  sequence->tokens = settings.prompt;
  sequence->prompt_length = std::ssize(settings.prompt);
  sequence->cache = target.new_cache(
      std::min(settings.context_length, std::ssize(settings.prompt) + settings.max_tokens),
      KvType::kF32
  );
  sequence->draft_state = drafter.new_state(settings.context_length);
  sequence->sampler = std::make_shared<const Sampler>(settings.sampling, target.shape().vocabulary);
  sequence->penalties = PenaltyWindow(settings.sampling, settings.prompt);
  sequence->rule = settings.rule;
  sequence->draft_max = settings.draft_max;
  sequence->draft_choices = settings.draft_choices;
  sequence->stop_tokens = settings.stop_tokens;
  sequence->max_tokens = settings.max_tokens;
  sequence->context_length = settings.context_length;
  sequence->stop_watch = watch;
  return sequence;
}

inline std::vector<TokenId> reply_of(const Sequence& sequence) {
  return {sequence.tokens.begin() + sequence.prompt_length, sequence.tokens.end()};
}

inline RunResult run(
    TargetModel& target, Drafter& drafter, const RunSettings& settings, StopWatch* watch = nullptr
) {
  const auto sequence = new_sequence(target, drafter, settings, watch);
  Cycle cycle(target, drafter);
  BlockPolicy policy(cycle.costs(), std::min(settings.draft_max, drafter.max_drafts()));
  sequence->policy = settings.adapt_drafts ? &policy : nullptr;
  std::vector<Sequence*> batch = {sequence.get()};
  RunResult result;
  while (sequence->finish == FinishReason::kNone) {
    result.steps.push_back(cycle.step(batch).sequences.front());
    EXPECT_LE(sequence->unprocessed(), result.steps.back().prompt ? sequence->length() : 1);
  }
  EXPECT_EQ(sequence->cache->length(), sequence->length() - 1);
  result.reply = reply_of(*sequence);
  result.finish = sequence->finish;
  return result;
}

/// Prompt and reply of a run: a reference for scripted drafters.
inline std::vector<TokenId> whole_text(const RunSettings& settings, const RunResult& result) {
  std::vector<TokenId> text = settings.prompt;
  text.insert(text.end(), result.reply.begin(), result.reply.end());
  return text;
}

}  // namespace octet::test
