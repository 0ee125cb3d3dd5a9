// Holds a reply to a number of tokens of thought, exactly: when they are used up, nothing but the
// close of the thought may come, token by token, and no new thought may open. Also ends a thought
// on demand. Lets another constraint speak where the budget has nothing to say. The sentence that
// asks the model for short thoughts belongs to the template. Invariant: the tokens between the
// label of a thought and its close, or the call that breaks it off, are at most the budget, summed
// over the reply; end tokens that end nothing are counted too.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "octet/base/token.h"
#include "octet/sampling/token_constraint.h"
#include "octet/text/tokenizer.h"

namespace octet {

class ThinkingBudget : public TokenConstraint {
 public:
  struct Options {
    std::optional<int64_t> tokens;  // not given: no limit until end_now()
    /// What closes a thought by force, token by token; ends with the close of a channel. Empty: the
    /// close alone.
    std::vector<TokenId> close;
  };

  /// `inner` may be null. The tokenizer must outlive it and have channel tokens.
  ThinkingBudget(
      const Tokenizer& tokenizer, Options options, std::unique_ptr<TokenConstraint> inner
  );
  ~ThinkingBudget() override;

  /// Starts inside a thought where the prompt ends inside one. Call before the first token.
  void start(std::span<const TokenId> prompt);
  /// From here on no further thought. Only between two steps.
  void end_now();

  int64_t used() const { return state().used; }
  /// The budget, not the model, closed a thought.
  bool closed_by_force() const { return state().forced; }

  const TokenMask* mask() override;
  void push(TokenId token) override;
  void roll_back(int64_t tokens) override;
  void forced(int64_t most, std::vector<TokenId>& out) const override;
  const Error* failure() const override { return inner_ != nullptr ? inner_->failure() : nullptr; }

 private:
  enum class Part : uint8_t { kOutside, kLabel, kThought };
  struct State {
    Part part = Part::kOutside;
    bool forced = false;  // a thought was closed by force
    int label = 0;        // tokens of the label so far
    size_t closing = 0;   // tokens of the close that have come
    int64_t used = 0;
  };
  class Mask;

  const State& state() const { return history_.back(); }
  bool exhausted() const { return budget_ && state().used >= *budget_; }
  bool must_close() const { return exhausted() && state().part == Part::kThought; }
  State next(TokenId token) const;

  const Tokenizer& tokenizer_;
  std::optional<int64_t> budget_;
  std::vector<TokenId> close_;
  std::unique_ptr<TokenConstraint> inner_;
  std::vector<State> history_;  // the last one is now
  std::unique_ptr<Mask> mask_;
};

}  // namespace octet
