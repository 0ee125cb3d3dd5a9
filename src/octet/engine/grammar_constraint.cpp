#include "octet/engine/grammar_constraint.h"

#include <algorithm>
#include <utility>

namespace octet {

GrammarConstraint::GrammarConstraint(std::shared_ptr<const Grammar> grammar)
    : matcher_(std::move(grammar)) {}

const TokenMask* GrammarConstraint::mask() {
  return silent() ? nullptr : &matcher_;
}

void GrammarConstraint::push(TokenId token) {
  if (refused_ > 0 || !matcher_.accept(token)) {
    ++refused_;
  }
}

void GrammarConstraint::roll_back(int64_t tokens) {
  const int64_t unseen = std::min(tokens, refused_);
  refused_ -= unseen;
  matcher_.rollback(tokens - unseen);
}

void GrammarConstraint::forced(int64_t most, std::vector<TokenId>& out) const {
  if (!silent() && most > 0) {
    const std::vector<TokenId> tokens = matcher_.forced_tokens(static_cast<int>(most));
    out.insert(out.end(), tokens.begin(), tokens.end());
  }
}

}  // namespace octet
