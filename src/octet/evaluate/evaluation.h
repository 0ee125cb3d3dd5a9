// Runs suites of prompts through an engine, plainly and drafted in turn on the same prompts, and
// records every reply: how long it took, how its drafts fared, and that every arm wrote the same
// text. Not for adding up (summary.h) or showing. Invariant: an arm never finds in the cache what
// another arm left there; inside a conversation later turns reuse earlier ones.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "octet/base/function_ref.h"
#include "octet/chat/chat_template.h"
#include "octet/engine/engine.h"
#include "octet/evaluate/prompt_suite.h"
#include "octet/sampling/sampling_params.h"

namespace octet {

/// One way to decode.
struct EvalArmSettings {
  std::string name;       // "plain", "3 drafts", "adaptive"
  int draft_max = 0;      // 0: plain decoding
  bool adaptive = false;  // the block policy chooses 0 .. draft_max
};

struct EvalRequest {
  std::span<const SuitePrompt> prompts;
  SamplingParams sampling;   // prompt i uses seed + i
  bool thinking = true;      // enable_thinking of the template
  int64_t max_tokens = 128;  // of a reply
  int64_t max_turns = 0;     // of a conversation; 0: all
  int concurrency = 1;       // conversations at a time
  bool ignore_end = false;   // go on after end tokens, to max_tokens
  std::vector<EvalArmSettings> arms;
};

/// One reply.
struct EvalRecord {
  int64_t prompt = 0;  // index
  int turn = 0;        // from 0
  FinishReason finish = FinishReason::kNone;
  int64_t prompt_tokens = 0;
  int64_t reused_tokens = 0;
  int64_t reply_tokens = 0;
  double first_token_ms = 0.0;  // since submit
  double total_ms = 0.0;
  std::vector<double> between_tokens_ms;
  AcceptanceStatistics acceptance;
  uint64_t text_digest = 0;  // of the reply's tokens
  std::string error;         // why there is no reply: then all figures are 0
};

struct EvalArm {
  EvalArmSettings settings;
  double wall_ms = 0.0;             // of the batches of conversations, added
  std::vector<EvalRecord> records;  // by prompt, then turn
};

struct Evaluation {
  std::vector<EvalArm> arms;
  /// Replies of an arm that are not those of the first arm, token for token. Drafting is lossless,
  /// so anything but 0 is a fault of octet.
  int64_t differing = 0;
};

/// Replies that are not the same, token for token, or that only one of two arms has; records are
/// ordered by prompt and turn.
int64_t differing_replies(std::span<const EvalRecord> first, std::span<const EvalRecord> other);

/// `engine` is idle and used by nobody else meanwhile; its parallel must be >= concurrency.
/// Before the first prompt every arm writes short replies that are recorded nowhere.
/// on_batch is called with the prompts done by all arms. Throws Error for requests that no prompt
/// can fulfil; a prompt that does not fit the context gets a record with an error in every arm.
Evaluation evaluate(
    Engine& engine,
    const ChatTemplate& chat_template,
    const std::shared_ptr<const Tokenizer>& tokenizer,
    const EvalRequest& request,
    FunctionRef<void(int64_t)> on_batch
);

}  // namespace octet
