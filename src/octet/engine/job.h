// A request in the engine, from submit to its last event: what was asked, and while it runs, the
// slot and the run that serve it. Knows its age and its deadlines; what is done about them is the
// engine's business. Invariant: `slot` is there exactly while `run` is and is not suspended.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <memory>

#include "octet/engine/engine.h"
#include "octet/engine/reply_run.h"
#include "octet/engine/slot.h"
#include "octet/engine/thinking_budget.h"

namespace octet {

using Clock = std::chrono::steady_clock;

inline double ms_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

/// A request from submit to its last event.
struct Job {
  EngineRequest request;
  std::shared_ptr<ReplyStream> stream;
  Clock::time_point submitted = Clock::now();

  // While it runs:
  Slot* slot = nullptr;
  std::unique_ptr<ThinkingBudget> thinking;
  std::unique_ptr<ReplyRun> run;
  Clock::time_point last_tokens;
  ReplyReport report;

  bool decoding() const { return run->sequence().unprocessed() == 1; }
  /// Rows before its next decode step. Of a reply that goes on in another slot the last published
  /// token is left for that step, which may draft behind it.
  int64_t unread() const {
    const Sequence& sequence = run->sequence();
    return sequence.unprocessed() - (sequence.reply_length() > 0 ? 1 : 0);
  }
  /// What its slot holds when it has run as far as it has.
  std::vector<TokenId> text() const {
    return run != nullptr ? run->text() : request.generate.prompt;
  }
  /// Rows of its next step, at most.
  int64_t rows() const { return decoding() ? kMaxDrafts + 1 : run->sequence().chunk_rows; }
  /// What keys, values and draft context may take more after its next step.
  int64_t growth_bytes(int64_t draft_context_bytes) const {
    const Sequence& sequence = run->sequence();
    const SequenceCache& cache = *sequence.cache;
    const int64_t after = std::min(cache.length() + rows(), cache.capacity());
    return std::max<int64_t>(0, cache.bytes_at(after) - cache.bytes()) +
           std::max<int64_t>(0, draft_context_bytes - sequence.draft_state->bytes());
  }
  double age_ms(Clock::time_point now) const { return ms_between(submitted, now); }
  /// How long it takes to the first word of speech when its thought is closed a step from now: that
  /// step, one for every token of the close (certain ones share steps, so this is the most), and
  /// one for the word.
  double ms_to_speech(double step_ms) const {
    const int64_t close = std::max<int64_t>(1, std::ssize(request.thinking_close));
    return static_cast<double>(close + 2) * step_ms;
  }
  /// Its time is over.
  bool late(Clock::time_point now) const {
    const auto over = [&](double deadline_ms) {
      return deadline_ms > 0.0 && age_ms(now) > deadline_ms;
    };
    return over(request.deadline_ms) ||
           (report.first_token_ms == 0.0 && over(request.first_token_deadline_ms)) ||
           (!stream->clause_told() && over(request.first_clause_deadline_ms));
  }
};

}  // namespace octet
