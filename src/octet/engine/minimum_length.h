// Keeps a reply from ending before it has so many tokens: end tokens are forbidden until then. Lets
// another constraint speak beside it, which must leave other tokens than those. Stop strings are
// not its business (reply_text.h). Invariant: the first `tokens` tokens hold no end token.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "octet/base/token.h"
#include "octet/sampling/token_constraint.h"

namespace octet {

class MinimumLength : public TokenConstraint {
 public:
  /// `inner` may be null and must outlive it.
  MinimumLength(int64_t tokens, std::vector<TokenId> end_tokens, TokenConstraint* inner);
  ~MinimumLength() override;

  const TokenMask* mask() override;
  void push(TokenId token) override;
  void roll_back(int64_t tokens) override;
  void forced(int64_t most, std::vector<TokenId>& out) const override;
  const Error* failure() const override { return inner_ != nullptr ? inner_->failure() : nullptr; }

 private:
  class Mask;

  int64_t tokens_;
  int64_t pushed_ = 0;
  TokenConstraint* inner_;
  std::unique_ptr<Mask> mask_;
};

}  // namespace octet
