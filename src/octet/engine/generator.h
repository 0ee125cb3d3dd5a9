// One conversation with the pair, one reply at a time: what `octet run`, `octet chat` and `octet
// verify` use. Keeps the caches of target and drafter between replies, so that a prompt that
// continues the last text costs only what is new. Many conversations at once are not its business.
// Invariant: a reply depends on the request alone, not on what this generator did before nor on the
// drafter.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "octet/base/function_ref.h"
#include "octet/base/token.h"
#include "octet/engine/acceptance_statistics.h"
#include "octet/models/target_model.h"
#include "octet/sampling/sampling_params.h"
#include "octet/speculation/cycle.h"
#include "octet/speculation/drafter.h"
#include "octet/speculation/license.h"
#include "octet/speculation/proposal.h"
#include "octet/text/tokenizer.h"

namespace octet {

struct GenerateRequest {
  std::vector<TokenId> prompt;  // the whole text so far, begin token included; at least one token
  SamplingParams sampling;      // tokens that the tokenizer suppresses are forbidden as well
  /// End of text, end of turn, ...: all of them. Not given: those of the tokenizer.
  std::optional<std::vector<TokenId>> stop_tokens;
  std::vector<std::string> stop_strings;
  int64_t max_tokens = 512;  // of the reply, exact
  int draft_max =
      kMaxDrafts;  // drafts a step, clamped to what the drafter gives; 0: plain decoding
  DraftChoices draft_choices = default_draft_choices();  // for temperature > 0
  bool adapt_drafts =
      true;  // let measured costs and acceptance choose 0 .. draft_max, step by step
  VerifyRule rule = VerifyRule::kCompare;
  const std::atomic<bool>* cancelled = nullptr;  // looked at before each publication
};

struct EmittedToken {
  TokenId token = 0;
  bool drafted = false;  // a draft that was accepted; otherwise the target's own
  std::string text;      // text that became printable with it: whole characters, no part of a stop
                         // string, no end token
};

struct GenerateStep {
  std::span<const EmittedToken> tokens;  // empty for prompt passes that published nothing
  SequenceStep step;
  StepTimes times;
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

struct GeneratorOptions {
  int64_t context_length = 0;  // positions; 0: the model's limit
  KvType kv_type = KvType::kBF16;
};

class Generator {
 public:
  using OnStep = FunctionRef<void(const GenerateStep&)>;

  /// All three must outlive the generator. Throws Error when the context is larger than the
  /// model's.
  Generator(
      TargetModel& target, Drafter& drafter, const Tokenizer& tokenizer, GeneratorOptions options
  );
  ~Generator();

  /// Throws Error(kInvalidArgument) for a request that cannot be served: empty or too long a
  /// prompt, ids outside the vocabulary, parameters out of range. The generator stays usable.
  GenerateResult generate(const GenerateRequest& request, OnStep on_step);
  GenerateResult generate(const GenerateRequest& request);

  /// Forgets the conversation: the next prompt is processed from its start.
  void reset();

  int64_t context_length() const;
  int64_t kv_bytes() const;             // keys and values of the target
  int64_t draft_context_bytes() const;  // what the drafter keeps of the text

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octet
