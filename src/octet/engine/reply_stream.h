// The two ends of a reply: the engine's worker writes events, whoever asked reads them, cancels, or
// ends the thinking, and tells when it has found the first clause. Events of one reply are bounded
// by its token limit. Invariant: events come in the order of the text, and the last one is
// ReplyFinished or ReplyFailed.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "octet/base/error.h"
#include "octet/engine/generate.h"

namespace octet {

/// The prompt's processing begins.
struct ReplyStarted {
  int64_t prompt_tokens = 0;
  int64_t reused_tokens = 0;  // of them, found in the cache
};

/// So many tokens of the prompt are processed.
struct ReplyProgress {
  int64_t processed_tokens = 0;
};

struct ReplyTokens {
  std::vector<EmittedToken> tokens;
  SequenceStep step;
  StepTimes times;  // of the step, all its sequences together
};

/// How a reply went, in milliseconds since submit.
struct ReplyReport {
  FinishReason finish = FinishReason::kNone;
  bool started = false;  // its prompt was looked up and read; else it only waited
  int64_t prompt_tokens = 0;
  int64_t reused_tokens = 0;
  int64_t reply_tokens = 0;
  double queue_ms = 0.0;        // until it started, or ended without
  double first_token_ms = 0.0;  // 0: none came
  double total_ms = 0.0;
  std::vector<double> between_tokens_ms;  // a step's tokens share its time
  AcceptanceStatistics acceptance;
  double break_even_length = 0.0;  // see EngineStatus
};

struct ReplyFinished {
  GenerateResult result;
  ReplyReport report;
  std::string rest;  // text that was held back and belongs to the reply
  int64_t thinking_tokens = 0;
  bool thinking_closed = false;  // by force
};

struct ReplyFailed {
  Error error;
};

using ReplyStreamEvent =
    std::variant<ReplyStarted, ReplyProgress, ReplyTokens, ReplyFinished, ReplyFailed>;

class ReplyStream {
 public:
  explicit ReplyStream(std::function<void()> on_event) : on_event_(std::move(on_event)) {}

  /// The next event if there is one.
  std::optional<ReplyStreamEvent> try_next();
  /// Waits for the next event.
  ReplyStreamEvent next();

  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  /// Closes an open thought and allows no further one, from the next step on.
  void end_thinking() { end_thinking_.store(true, std::memory_order_relaxed); }

  /// Something of it can be spoken, or it calls a tool.
  void tell_clause() { clause_told_.store(true, std::memory_order_relaxed); }

  // For the engine.
  void push(ReplyStreamEvent event);
  const std::atomic<bool>& cancelled() const { return cancelled_; }
  bool clause_told() const { return clause_told_.load(std::memory_order_relaxed); }
  bool take_end_thinking() { return end_thinking_.exchange(false, std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  std::condition_variable readable_;
  std::deque<ReplyStreamEvent> events_;
  std::function<void()> on_event_;
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> end_thinking_{false};
  std::atomic<bool> clause_told_{false};
};

}  // namespace octet
