#include "octet/engine/thinking_budget.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "octet/base/check.h"

namespace octet {
namespace {

// States kept for taking tokens back: more than any block has.
constexpr size_t kHistory = 128;

// A label is "thought" and a line end; what has none for so long is taken for the thought itself.
constexpr int kLabelTokens = 8;

constexpr float kNever = -std::numeric_limits<float>::infinity();

}  // namespace

/// The other constraint's mask, then what the budget forbids.
class ThinkingBudget::Mask : public TokenMask {
 public:
  const TokenMask* inner = nullptr;
  TokenId only = kNoToken;    // the one token that may come
  TokenId banned = kNoToken;  // one that may not

  void apply(std::span<float> logits) const override {
    if (only != kNoToken) {
      const float logit = logits[static_cast<size_t>(only)];
      std::fill(logits.begin(), logits.end(), kNever);
      logits[static_cast<size_t>(only)] = logit > kNever ? logit : 0.0F;
      return;
    }
    if (inner != nullptr) {
      inner->apply(logits);
    }
    if (banned != kNoToken) {
      logits[static_cast<size_t>(banned)] = kNever;
    }
  }
};

ThinkingBudget::ThinkingBudget(
    const Tokenizer& tokenizer, Options options, std::unique_ptr<TokenConstraint> inner
)
    : tokenizer_(tokenizer),
      budget_(options.tokens),
      close_(std::move(options.close)),
      inner_(std::move(inner)),
      history_(1),
      mask_(std::make_unique<Mask>()) {
  const TokenId close = tokenizer.chat_tokens().channel_close;
  OCTET_CHECK(close != kNoToken);
  if (close_.empty()) {
    close_ = {close};
  }
  OCTET_CHECK(close_.back() == close);
}

ThinkingBudget::~ThinkingBudget() = default;

void ThinkingBudget::start(std::span<const TokenId> prompt) {
  const ChatTokens& tokens = tokenizer_.chat_tokens();
  size_t open = prompt.size();
  while (open > 0 && prompt[open - 1] != tokens.channel_open &&
         prompt[open - 1] != tokens.channel_close && prompt[open - 1] != tokens.turn_open) {
    --open;
  }
  if (open == 0 || prompt[open - 1] != tokens.channel_open) {
    return;
  }
  history_.back().part = Part::kLabel;
  for (const TokenId token : prompt.subspan(open)) {
    history_.back() = next(token);
  }
  history_.back().used = 0;  // what the caller wrote is not the model's thought
}

void ThinkingBudget::end_now() {
  budget_ = state().used;
}

ThinkingBudget::State ThinkingBudget::next(TokenId token) const {
  const ChatTokens& tokens = tokenizer_.chat_tokens();
  State state = history_.back();
  if (must_close()) {
    state.forced = true;
    if (++state.closing == close_.size()) {
      state.closing = 0;
      state.part = Part::kOutside;
    }
  } else if (token == tokens.channel_open) {
    state.part = Part::kLabel;
    state.label = 0;
  } else if (token == tokens.channel_close || token == tokens.tool_call_open) {
    state.part = Part::kOutside;  // an end token that ends nothing leaves a thought open
  } else if (state.part == Part::kThought) {
    ++state.used;
  } else if (state.part == Part::kLabel) {
    const bool known = token < tokenizer_.vocabulary_size();
    const bool line_ends = known && tokenizer_.bytes(token).find('\n') != std::string_view::npos;
    ++state.label;
    state.part = line_ends || state.label >= kLabelTokens ? Part::kThought : Part::kLabel;
  }
  return state;
}

const TokenMask* ThinkingBudget::mask() {
  const ChatTokens& tokens = tokenizer_.chat_tokens();
  mask_->only = must_close() ? close_[state().closing] : kNoToken;
  mask_->banned = exhausted() && !must_close() ? tokens.channel_open : kNoToken;
  mask_->inner = inner_ != nullptr ? inner_->mask() : nullptr;
  const bool speaks = mask_->only != kNoToken || mask_->banned != kNoToken;
  return speaks ? mask_.get() : mask_->inner;
}

void ThinkingBudget::push(TokenId token) {
  history_.push_back(next(token));
  if (history_.size() > 2 * kHistory) {
    history_.erase(history_.begin(), history_.begin() + kHistory);
  }
  if (inner_ != nullptr) {
    inner_->push(token);
  }
}

void ThinkingBudget::roll_back(int64_t tokens) {
  OCTET_CHECK(tokens >= 0 && tokens < std::ssize(history_));
  history_.resize(history_.size() - static_cast<size_t>(tokens));
  if (inner_ != nullptr) {
    inner_->roll_back(tokens);
  }
}

void ThinkingBudget::forced(int64_t most, std::vector<TokenId>& out) const {
  if (must_close()) {
    for (size_t i = state().closing; i < close_.size() && std::ssize(out) < most; ++i) {
      out.push_back(close_[i]);
    }
  } else if (inner_ != nullptr) {
    inner_->forced(most, out);
    if (exhausted()) {  // no thought opens any more, whatever the grammar leads to
      out.erase(
          std::find(out.begin(), out.end(), tokenizer_.chat_tokens().channel_open), out.end()
      );
    }
  }
}

}  // namespace octet
