// One reply in the making: a request laid over a slot's sequence, and what every step brings, as
// tokens with their text. May leave its slot between two steps and go on in another. Shared by the
// generator (one conversation) and the engine (many); the steps themselves are theirs. Invariant:
// the request is checked before anything is touched, and the result is the sum of what take() gave
// out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "octet/engine/generate.h"
#include "octet/engine/minimum_length.h"
#include "octet/engine/reply_text.h"
#include "octet/engine/slot.h"
#include "octet/models/target_model.h"
#include "octet/speculation/cycle.h"
#include "octet/text/tokenizer.h"

namespace octet {

/// What replies are made with. All must outlive the runs.
struct ReplyContext {
  const TargetModel& target;
  const Drafter& drafter;
  const Tokenizer& tokenizer;
  const StepCosts& costs;
  /// The policy of the last reply that might draft as much as the drafter can: a new text begins
  /// with it.
  std::optional<BlockPolicy>& habits;
};

/// `asked` positions, 0: the model's limit. Throws Error(kInvalidArgument) when it is more.
int64_t checked_context_length(int64_t asked, const TargetShape& shape);

/// Throws Error(kInvalidArgument) for a request that cannot be served: empty or too long a prompt,
/// ids outside the vocabulary, parameters out of range.
void check_request(
    const GenerateRequest& request, const ReplyContext& context, int64_t context_length
);

class ReplyRun {
 public:
  /// The slot holds the first `kept` positions of the prompt (Slot::keep). It, the request and what
  /// the context names must outlive the run.
  ReplyRun(const ReplyContext& context, const GenerateRequest& request, Slot& slot, int64_t kept);
  ~ReplyRun();
  ReplyRun(const ReplyRun&) = delete;
  ReplyRun& operator=(const ReplyRun&) = delete;

  /// Leaves the slot, which keeps the text so far, and needs another before its next step. Not when
  /// it is finished.
  void suspend();
  /// Goes on in a slot that holds the first `kept` positions of text(). What is missing is
  /// processed again; what comes is what would have come, because no row depends on how it was
  /// made.
  void resume(Slot& slot, int64_t kept);
  bool suspended() const { return slot_ == nullptr; }
  /// The prompt and what was published.
  std::vector<TokenId> text() const;

  /// Not while it is suspended.
  Sequence& sequence() { return slot_->sequence; }
  const Sequence& sequence() const { return slot_->sequence; }
  bool finished() const { return result_.finish != FinishReason::kNone; }

  /// What a step of the sequence published.
  std::vector<EmittedToken> take(const SequenceStep& step, const StepTimes& times);
  /// Ends the reply between two steps. Returns text that was held back.
  std::string end(FinishReason reason);

  const GenerateResult& result() const { return result_; }
  GenerateResult take_result() { return std::move(result_); }

 private:
  void enter(Slot& slot, int64_t kept);
  void leave();

  const ReplyContext& context_;
  const GenerateRequest& request_;
  Slot* slot_ = nullptr;  // null: suspended
  ReplyText text_;
  std::optional<MinimumLength> minimum_;  // asked for
  GenerateResult result_;
};

}  // namespace octet
