// Many replies at once: requests in, one stream of events each out. One worker thread owns the
// cycle; chunks of prompts and decode blocks of all sequences share its steps under one budget of
// rows. Keeps texts for reuse (slot_pool.h). Knows nothing of messages, JSON or HTTP. Invariants: a
// reply's tokens depend on its request alone, never on company, drafting or what was kept; every
// stream ends with exactly one ReplyFinished or ReplyFailed; a cancelled reply stops within one
// step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "octet/engine/generate.h"
#include "octet/engine/reply_stream.h"
#include "octet/models/target_model.h"
#include "octet/sampling/token_constraint.h"
#include "octet/speculation/drafter.h"
#include "octet/text/tokenizer.h"

namespace octet {

struct EngineRequest {
  /// cancelled and constraint stay null: the engine sets them.
  GenerateRequest generate;
  /// Higher first. While a reply of a higher priority is in the making, lower ones wait; where
  /// slots or memory are short, they give theirs up and go on later, with the same text.
  int priority = 0;
  /// Milliseconds after submit; 0: none. Without a first token, or without an end, by then the
  /// reply finishes with kDeadline.
  double first_token_deadline_ms = 0.0;
  double deadline_ms = 0.0;
  /// Likewise without a clause that could be spoken, as its reader tells:
  /// ReplyStream::tell_clause().
  double first_clause_deadline_ms = 0.0;
  /// Speech should have begun by then: an open thought is closed as many steps earlier as its close
  /// takes, by what steps took of late, and no other opens. 0: half of deadline_ms or of
  /// first_clause_deadline_ms, whichever is sooner, so that a reply with a deadline never consists
  /// of thoughts alone; without one, none.
  double speech_deadline_ms = 0.0;
  /// Tokens of thought; not given: no limit. Needs a vocabulary with channel tokens.
  std::optional<int64_t> thinking_budget;
  std::vector<TokenId> thinking_close;          // see ThinkingBudget::Options::close
  std::unique_ptr<TokenConstraint> constraint;  // a grammar; has seen nothing of the reply
  /// Keep the prompt for ever, for texts that begin with it.
  bool pin_prompt = false;
  /// The owner's own request, not a client's: taken although the queue is full, and told to no
  /// observer.
  bool warm_up = false;
};

struct EngineOptions {
  int64_t context_length = 0;  // positions of one text; 0: the model's limit
  KvType kv_type = KvType::kBF16;
  int parallel = 4;           // most sequences of a step
  int64_t queue_length = 64;  // most requests that wait beyond those that can start at once
  int64_t slots = 0;          // texts kept, those in the making included; 0: parallel + 8
  int64_t cache_bytes = 0;    // ceiling for keys, values and draft contexts; 0: none
  /// What the drafter keeps of one text at most; counted before a text is admitted.
  int64_t draft_context_bytes = 0;
  /// Rows of the target in one step: prompts' chunks and one row of every text that decodes. Drafts
  /// come on top, up to max_drafts() rows for each of those.
  int64_t step_rows = 256;
  int64_t shared_prompt_rows = 64;  // of them for prompts while somebody waits for the next word
  /// Spent at most, by the constructor, on measuring what steps cost (learn_costs.h), so that the
  /// first replies need not; 0: they do.
  double learn_costs_ms = 0.0;
};

/// One step of the worker, for whoever counts.
struct EngineStep {
  int64_t prompt_rows = 0;
  int64_t decoding = 0;  // sequences
  int64_t tokens = 0;    // published
  StepTimes times;
  std::vector<SequenceStep> sequences;
};

/// Called on the worker thread between steps: quick, and never back into the engine.
class EngineObserver {
 public:
  virtual ~EngineObserver() = default;
  virtual void on_step(const EngineStep& step) = 0;
  virtual void on_reply(const ReplyReport& report) = 0;
};

/// How things stand; a copy.
struct EngineStatus {
  int64_t running = 0;  // replies in the making
  int64_t waiting = 0;  // requests in the queue
  int64_t slots_idle = 0;
  int64_t slots_pinned = 0;
  int64_t evictions = 0;
  int64_t cache_bytes = 0;          // keys, values and draft contexts of all texts kept
  int64_t draft_context_bytes = 0;  // of them, draft contexts
  int64_t cache_bytes_limit = 0;
  double plain_step_ms = 0.0;  // one sequence, one row; 0: not measured yet
  double block_step_ms = 0.0;  // one sequence, all rows of a block
  double draft_ms = 0.0;
  /// Tokens that a drafted step of one sequence, a full block, must bring to be worth its time; 0:
  /// not measured yet.
  double break_even_length() const {
    const bool measured = plain_step_ms > 0.0 && block_step_ms > 0.0;
    return measured ? (draft_ms + block_step_ms) / plain_step_ms : 0.0;
  }
  bool drafted = false;  // a drafted step has been made
};

class Engine {
 public:
  /// The models must outlive the engine, and are its alone while a reply is in the making.
  Engine(
      TargetModel& target,
      Drafter& drafter,
      std::shared_ptr<const Tokenizer> tokenizer,
      EngineOptions options,
      EngineObserver* observer = nullptr
  );
  /// Cancels what is left.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Null when the queue is full or the engine is draining. Throws Error(kInvalidArgument) for a
  /// request that cannot be served, be it that no slot is left to pin its prompt to,
  /// Error(kResourceExhausted) for one that could never fit below the ceiling of memory. `on_event`
  /// is called, on the worker thread, whenever the stream has become readable: quick, and never
  /// back into the engine.
  std::shared_ptr<ReplyStream> submit(
      EngineRequest request, std::function<void()> on_event = nullptr
  );

  /// What is kept of `text` (a prompt and its finished reply) is cut to `length`, before the next
  /// request begins: nothing behind it was ever said. From any thread; returns at once.
  void cut_text(std::vector<TokenId> text, int64_t length);

  /// No new requests; those submitted go on.
  void drain();
  /// Texts kept for reuse are given up, pinned ones excepted, before the next request is admitted.
  void forget_texts();
  /// Nothing is running or waiting.
  bool idle() const;
  void cancel_all();

  EngineStatus status() const;
  int64_t context_length() const;
  int max_drafts() const;
  const EngineOptions& options() const;

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace octet
