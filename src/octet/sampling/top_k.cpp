#include "octet/sampling/top_k.h"

#include <algorithm>
#include <array>
#include <limits>

namespace octet {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr size_t kStretch = 64;  // logits compared with the threshold at once

bool better(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

/// Keeps the best so far in a buffer of a few times k; every time it is full the k-th best becomes
/// the new threshold.
class Selection {
 public:
  explicit Selection(size_t k) : k_(k), full_(std::max<size_t>(4 * k, 256)) {}

  float threshold() const { return threshold_; }

  void offer(TokenId token, float logit) {
    if (!(logit > threshold_)) {
      return;  // an equal one has a higher id than those kept
    }
    kept_.push_back({token, logit});
    if (kept_.size() >= full_) {
      shrink();
    }
  }

  std::vector<Candidate> take() {
    shrink();
    std::sort(kept_.begin(), kept_.end(), better);
    return std::move(kept_);
  }

 private:
  void shrink() {
    if (kept_.size() < k_) {
      return;
    }
    const auto last = kept_.begin() + static_cast<std::ptrdiff_t>(k_ - 1);
    std::nth_element(kept_.begin(), last, kept_.end(), better);
    threshold_ = last->logit;
    kept_.resize(k_);
  }

  size_t k_;
  size_t full_;
  float threshold_ = kMinusInfinity;
  std::vector<Candidate> kept_;
};

/// Written so that compilers turn it into vector compares: no branch inside.
bool any_above(const float* logits, float threshold) {
  int32_t any = 0;
  for (size_t i = 0; i < kStretch; ++i) {
    any |= static_cast<int32_t>(logits[i] > threshold);
  }
  return any != 0;
}

}  // namespace

std::vector<Candidate> top_k_candidates(std::span<const float> logits, int64_t k) {
  Selection selection(static_cast<size_t>(std::min<int64_t>(k, std::ssize(logits))));
  size_t i = 0;
  for (; i + kStretch <= logits.size(); i += kStretch) {
    if (any_above(&logits[i], selection.threshold())) {
      for (size_t j = i; j < i + kStretch; ++j) {
        selection.offer(static_cast<TokenId>(j), logits[j]);
      }
    }
  }
  for (; i < logits.size(); ++i) {
    selection.offer(static_cast<TokenId>(i), logits[i]);
  }
  return selection.take();
}

std::array<float, kRivals> greatest_by_class(std::span<const float> logits) {
  std::array<float, kRivals> best{};
  best.fill(kMinusInfinity);
  size_t i = 0;
  for (; i + kRivals <= logits.size(); i += kRivals) {
    for (size_t j = 0; j < kRivals; ++j) {
      best[j] = logits[i + j] > best[j] ? logits[i + j] : best[j];
    }
  }
  for (; i < logits.size(); ++i) {
    best[i % kRivals] = std::max(best[i % kRivals], logits[i]);
  }
  return best;
}

float greatest_logit(std::span<const float> logits) {
  const std::array<float, kRivals> best = greatest_by_class(logits);
  return *std::max_element(best.begin(), best.end());
}

}  // namespace octet
