#include "octet/speculation/draft_balance.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace octet {
namespace {

// Share of the past that one more block keeps.
constexpr double kMemory = 0.99;
constexpr double kTrustSpeedup = 1.4;

}  // namespace

void DraftBalance::Yield::add(double tokens) {
  sum = sum * kMemory + tokens;
  squares = squares * kMemory + tokens * tokens;
}

double DraftBalance::Yield::standard_error(double blocks) const {
  return blocks > 0.0 ? std::sqrt(std::max(0.0, squares - sum * sum / blocks)) : 0.0;
}

void DraftBalance::add(double tokens, int rows, const TokensByLength& by_length) {
  blocks_ = blocks_ * kMemory + 1.0;
  verified_.add(tokens);
  for (double& blocks : blocks_by_rows_) {
    blocks *= kMemory;
  }
  blocks_by_rows_[static_cast<size_t>(rows)] += 1.0;
  for (size_t length = 0; length < by_length_.size(); ++length) {
    by_length_[length].add(by_length[length]);
  }
}

double DraftBalance::ms_per_token(const StepCosts& costs, int max_drafts, const Belief& belief)
    const {
  const double trust_ms = belief.trust_steps * costs.forward_ms(1);
  const double trust_tokens = belief.trust_steps * kTrustSpeedup;
  double best = std::numeric_limits<double>::infinity();
  const auto try_for = [&](double ms, const Yield& yield) {
    const double tokens =
        yield.sum + belief.standard_errors * yield.standard_error(blocks_) + trust_tokens;
    if (tokens > 0.0) {
      best = std::min(best, (ms + trust_ms) / tokens);
    }
  };
  double verified_ms = 0.0;
  for (size_t rows = 1; rows < blocks_by_rows_.size(); ++rows) {
    if (blocks_by_rows_[rows] > 0.0) {
      verified_ms += blocks_by_rows_[rows] * costs.block_ms(static_cast<int>(rows));
    }
  }
  try_for(verified_ms, verified_);
  for (int length = 1; length <= max_drafts; ++length) {
    try_for(blocks_ * costs.block_ms(length + 1), by_length_[static_cast<size_t>(length)]);
  }
  return best;
}

}  // namespace octet
