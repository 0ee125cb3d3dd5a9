// What may come next, decided token by token from the text before: grammars, choices, budgets of
// thought. Verification walks a constraint along the rows of a block, so it must be able to take
// tokens back. Knows nothing of rows or drafts. Invariant: mask() and forced() depend on the tokens
// pushed and not taken back, and on nothing else, so text stays the same however it was drafted.
#pragma once

#include <cstdint>
#include <vector>

#include "octet/base/error.h"
#include "octet/base/token.h"
#include "octet/sampling/sampler.h"

namespace octet {

class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  /// For the next token; null: everything is allowed. Valid until the next push or roll_back.
  virtual const TokenMask* mask() = 0;
  /// The next token of the text. It may be one that the mask forbids, when nothing was allowed.
  virtual void push(TokenId token) = 0;
  /// Takes the last `tokens` pushed tokens back; at most those of one block.
  virtual void roll_back(int64_t tokens) = 0;
  /// Appends at most `most` tokens that are the only ones possible from here on, in order. They
  /// make drafts that cost no drafter. Nothing is a right answer.
  virtual void forced(int64_t most, std::vector<TokenId>& out) const = 0;
  /// Why it cannot say what may come after the tokens pushed so far; null: it can. The sequence
  /// must then end, and none of the tokens of its last step are good. Never thrown from the calls
  /// above, which other sequences share a step with.
  virtual const Error* failure() const { return nullptr; }
};

}  // namespace octet
