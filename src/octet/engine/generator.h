// One conversation with the pair, one reply at a time: what `octet run`, `octet chat` and `octet
// verify` use. Keeps the caches of target and drafter between replies, so that a prompt that
// continues the last text costs only what is new. Many conversations at once: engine.h.
// Invariant: a reply depends on the request alone, not on what this generator did before nor on the
// drafter.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "octet/base/function_ref.h"
#include "octet/engine/generate.h"
#include "octet/models/target_model.h"
#include "octet/speculation/cycle.h"
#include "octet/speculation/drafter.h"
#include "octet/text/tokenizer.h"

namespace octet {

struct GenerateStep {
  std::span<const EmittedToken> tokens;  // empty for prompt passes that published nothing
  SequenceStep step;
  StepTimes times;
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
