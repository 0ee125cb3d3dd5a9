// A grammar as what decides the next token of a reply. Adapts the matcher, which refuses tokens, to
// the walk of verification, which may push one that was refused when nothing was allowed, and keeps
// what the matcher throws for texts that are too ambiguous until the reply's owner asks.
// Invariant: after a refused token or a failure nothing is restricted until the tokens behind it
// are taken back; then it is as though they had never come.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "octet/base/error.h"
#include "octet/grammar/matcher.h"
#include "octet/sampling/token_constraint.h"

namespace octet {

class GrammarConstraint : public TokenConstraint, private TokenMask {
 public:
  explicit GrammarConstraint(std::shared_ptr<const Grammar> grammar);

  const TokenMask* mask() override;
  void push(TokenId token) override;
  void roll_back(int64_t tokens) override;
  void forced(int64_t most, std::vector<TokenId>& out) const override;
  const Error* failure() const override { return failure_ ? &*failure_ : nullptr; }

 private:
  void apply(std::span<float> logits) const override;
  bool silent() const { return unseen_ > 0 || failure_ || matcher_.ended(); }

  Matcher matcher_;
  int64_t unseen_ = 0;  // tokens pushed that the matcher has not taken: from a refused one on
  /// Met where the matcher stands, by the mask or by the first unseen token. The mask is const for
  /// those who apply it.
  mutable std::optional<Error> failure_;
};

}  // namespace octet
