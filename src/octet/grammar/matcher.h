// Follows one reply through a grammar, token by token, and says what may come next. A small value:
// copying one is cheap. Not thread-safe itself; matchers of one grammar may run on several threads.
// Invariants: rollback(n) leaves the matcher as it was n accepted tokens ago; a token is allowed by
// the mask exactly when accept would take it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "octet/base/token.h"
#include "octet/base/token_mask.h"

namespace octet {

class Grammar;
class GrammarStates;

class Matcher : public TokenMask {
 public:
  /// At the start of the reply. The grammar's stop tokens are the tokenizer's.
  explicit Matcher(std::shared_ptr<const Grammar> grammar);

  /// Takes a token; false, and nothing changed, when the grammar forbids it. A stop token is
  /// allowed exactly where the text may end, and nothing is allowed after it.
  bool accept(TokenId token);
  bool allows(TokenId token) const;
  /// Forgets the last n accepted tokens, 0 .. length().
  void rollback(int64_t n);
  int64_t length() const { return static_cast<int64_t>(history_.size()) - 1; }

  /// The text may end here.
  bool can_end() const;
  /// A stop token was accepted.
  bool ended() const;

  /// Bit t of words[t / 64] says that token t may come next; words beyond the vocabulary are
  /// zeroed.
  void fill_mask(std::span<uint64_t> words) const;
  /// Minus infinity to all logits that may not come next.
  void apply(std::span<float> logits) const override;

  /// Tokens of the text that the grammar fixes from here on, at most `count`: good drafts. They are
  /// all allowed, in this order; the model may still spell the same text with other tokens.
  std::vector<TokenId> forced_tokens(int count) const;

 private:
  std::shared_ptr<const Grammar> grammar_;
  std::shared_ptr<GrammarStates> states_;
  std::vector<int32_t> history_;  // states, the first is the start
};

}  // namespace octet
