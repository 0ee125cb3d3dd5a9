#include "octet/sampling/penalty_window.h"

namespace octet {

PenaltyWindow::PenaltyWindow(const SamplingParams& params, std::span<const TokenId> prompt)
    : repetition_(params.repetition_penalty),
      presence_(params.presence_penalty),
      frequency_(params.frequency_penalty),
      active_(params.penalises()),
      last_n_(params.penalty_last_n) {
  if (params.penalty_scope == PenaltyScope::kPromptAndReply) {
    for (const TokenId token : prompt) {
      push(token);
    }
  }
}

void PenaltyWindow::push(TokenId token) {
  if (!active_) {
    return;
  }
  ++counts_[token];
  if (last_n_ == 0) {
    return;
  }
  recent_.push_back(token);
  if (static_cast<int64_t>(recent_.size()) > last_n_) {
    const auto oldest = counts_.find(recent_.front());
    if (--oldest->second == 0) {
      counts_.erase(oldest);
    }
    recent_.pop_front();
  }
}

void PenaltyWindow::apply(std::span<float> logits, TokenColumns columns) const {
  // Each token is adjusted on its own, so the order of the map does not matter.
  for (const auto& [token, count] : counts_) {
    const int64_t column = columns.column(token);
    if (column < 0 || column >= std::ssize(logits)) {
      continue;  // a prompt token that the model cannot write, or that a shortlist lacks
    }
    float& logit = logits[static_cast<size_t>(column)];
    logit = logit > 0.0F ? logit / repetition_ : logit * repetition_;
    logit -= presence_ + frequency_ * static_cast<float>(count);
  }
}

}  // namespace octet
