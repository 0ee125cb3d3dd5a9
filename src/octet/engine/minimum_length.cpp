#include "octet/engine/minimum_length.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

namespace octet {

/// The other constraint's mask, then no end tokens.
class MinimumLength::Mask : public TokenMask {
 public:
  explicit Mask(std::vector<TokenId> tokens) : end_tokens(std::move(tokens)) {}

  const std::vector<TokenId> end_tokens;
  const TokenMask* inner = nullptr;

  void apply(std::span<float> logits) const override {
    if (inner != nullptr) {
      inner->apply(logits);
    }
    for (const TokenId token : end_tokens) {
      if (static_cast<size_t>(token) < logits.size()) {
        logits[static_cast<size_t>(token)] = -std::numeric_limits<float>::infinity();
      }
    }
  }
};

MinimumLength::MinimumLength(
    int64_t tokens, std::vector<TokenId> end_tokens, TokenConstraint* inner
)
    : tokens_(tokens), inner_(inner), mask_(std::make_unique<Mask>(std::move(end_tokens))) {}

MinimumLength::~MinimumLength() = default;

const TokenMask* MinimumLength::mask() {
  mask_->inner = inner_ != nullptr ? inner_->mask() : nullptr;
  return pushed_ < tokens_ ? mask_.get() : mask_->inner;
}

void MinimumLength::push(TokenId token) {
  ++pushed_;
  if (inner_ != nullptr) {
    inner_->push(token);
  }
}

void MinimumLength::roll_back(int64_t tokens) {
  pushed_ -= tokens;
  if (inner_ != nullptr) {
    inner_->roll_back(tokens);
  }
}

void MinimumLength::forced(int64_t most, std::vector<TokenId>& out) const {
  if (inner_ == nullptr) {
    return;
  }
  const auto before = std::ssize(out);
  inner_->forced(most, out);
  for (auto i = before; i < std::ssize(out) && pushed_ + i - before < tokens_; ++i) {
    if (std::ranges::find(mask_->end_tokens, out[static_cast<size_t>(i)]) !=
        mask_->end_tokens.end()) {
      out.resize(static_cast<size_t>(i));
    }
  }
}

}  // namespace octet
