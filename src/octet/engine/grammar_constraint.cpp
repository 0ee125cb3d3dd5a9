#include "octet/engine/grammar_constraint.h"

#include <algorithm>
#include <utility>

namespace octet {

GrammarConstraint::GrammarConstraint(std::shared_ptr<const Grammar> grammar)
    : matcher_(std::move(grammar)) {}

const TokenMask* GrammarConstraint::mask() {
  return silent() ? nullptr : this;
}

void GrammarConstraint::apply(std::span<float> logits) const {
  try {
    matcher_.apply(logits);
  } catch (const Error& error) {
    failure_ = error;
  }
}

void GrammarConstraint::push(TokenId token) {
  try {
    if (unseen_ == 0 && !failure_ && matcher_.accept(token)) {
      return;
    }
  } catch (const Error& error) {
    failure_ = error;
  }
  ++unseen_;
}

void GrammarConstraint::roll_back(int64_t tokens) {
  const int64_t unseen = std::min(tokens, unseen_);
  unseen_ -= unseen;
  matcher_.rollback(tokens - unseen);
  if (unseen_ == 0) {
    failure_.reset();  // met again if the text comes here again
  }
}

void GrammarConstraint::forced(int64_t most, std::vector<TokenId>& out) const {
  if (silent() || most <= 0) {
    return;
  }
  try {
    const std::vector<TokenId> tokens = matcher_.forced_tokens(static_cast<int>(most));
    out.insert(out.end(), tokens.begin(), tokens.end());
  } catch (const Error&) {
    // Too ambiguous to look ahead: the mask will say so if the text comes there.
  }
}

}  // namespace octet
