#include "octet/speculation/block_policy.h"

#include <algorithm>

#include "octet/base/check.h"

namespace octet {
namespace {

// A conditional acceptance before anything was seen, and how many observations it weighs. High, so
// that a new sequence begins by drafting; light, so that three bad blocks end it.
constexpr double kPriorAcceptance = 0.75;
constexpr double kPriorWeight = 1.0;
// Share of the past that one more observation of a row keeps: about the last 30 blocks count.
constexpr double kMemory = 0.97;

// Steps between looks at another length: the first, and the most that repeated losses lead to. A
// look costs at most about one plain step, so kFirstProbe .. kLastProbe bound the cost of probing
// to well below 2 % of a long text.
constexpr int64_t kFirstProbe = 48;
constexpr int64_t kLastProbe = 768;
// A plain step in between refreshes C_t while drafting pays; it forgoes about (speedup - 1) plain
// steps.
constexpr int64_t kPlainProbe = 512;

}  // namespace

void StepCosts::Samples::add(double ms) {
  recent[static_cast<size_t>(count) % recent.size()] = ms;
  ++count;
}

double StepCosts::Samples::median() const {
  std::array<double, 7> sorted = recent;
  const auto used = std::min<size_t>(static_cast<size_t>(count), sorted.size());
  std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(used));
  return used == 0 ? 0.0 : sorted[used / 2];
}

void StepCosts::observe_forward(int rows, double ms) {
  OCTET_CHECK(rows >= 1);
  if (rows <= kMaxRows) {
    forward_[static_cast<size_t>(rows)].add(ms);
  }
}

void StepCosts::observe_draft(double ms) {
  draft_.add(ms);
}

bool StepCosts::knows_forward(int rows) const {
  return forward_[static_cast<size_t>(rows)].count > 0;
}

double StepCosts::draft_ms() const {
  return draft_.median();
}

double StepCosts::forward_ms(int rows) const {
  if (knows_forward(rows)) {
    return forward_[static_cast<size_t>(rows)].median();
  }
  int below = rows;
  while (below >= 1 && !knows_forward(below)) {
    --below;
  }
  int above = rows;
  while (above <= kMaxRows && !knows_forward(above)) {
    ++above;
  }
  const bool has_below = below >= 1;
  const bool has_above = above <= kMaxRows;
  if (!has_below && !has_above) {
    return 0.0;
  }
  if (!has_below || !has_above) {
    return forward_[static_cast<size_t>(has_below ? below : above)].median();
  }
  const double low = forward_[static_cast<size_t>(below)].median();
  const double high = forward_[static_cast<size_t>(above)].median();
  return low +
         (high - low) * static_cast<double>(rows - below) / static_cast<double>(above - below);
}

BlockForecast best_block(
    const StepCosts& costs, const std::array<double, kMaxDrafts>& conditional, int max_drafts
) {
  BlockForecast best;
  best.tokens_per_ms = 1.0 / std::max(costs.forward_ms(1), 1e-9);
  double tokens = 1.0;
  double joint = 1.0;
  for (int m = 1; m <= max_drafts; ++m) {
    joint *= conditional[static_cast<size_t>(m - 1)];
    tokens += joint;
    const double cost = costs.draft_ms() + costs.forward_ms(m + 1);
    const double rate = tokens / std::max(cost, 1e-9);
    if (rate > best.tokens_per_ms) {
      best = {.drafts = m, .tokens_per_ms = rate};
    }
  }
  return best;
}

bool BlockPolicy::Probe::due() {
  if (--left > 0) {
    return false;
  }
  left = distance;
  return true;
}

void BlockPolicy::Probe::lost() {
  distance = std::min(distance * 2, kLastProbe);
  left = distance;
}

void BlockPolicy::Probe::reset() {
  distance = kFirstProbe;
  left = distance;
}

BlockPolicy::BlockPolicy(const StepCosts& costs, int max_drafts)
    : costs_(costs), max_drafts_(std::min(max_drafts, kMaxDrafts)) {
  longer_.reset();
  plain_.distance = kPlainProbe;
  plain_.left = kPlainProbe;
}

double BlockPolicy::conditional(int k) const {
  // A row is expected to do as well as the one before it, until it was seen: blocks that were kept
  // short then grow again where the text is easy.
  double expected = kPriorAcceptance;
  for (int row = 0; row <= k; ++row) {
    const auto i = static_cast<size_t>(row);
    expected = (hits_[i] + expected * kPriorWeight) / (trials_[i] + kPriorWeight);
  }
  return expected;
}

/// The cost curve is learnt from use: a full block, a plain step and one in the middle. -1 when it
/// is known.
int BlockPolicy::explore_costs() const {
  if (!costs_.knows_draft() || !costs_.knows_forward(max_drafts_ + 1)) {
    return max_drafts_;
  }
  if (!costs_.knows_forward(1)) {
    return 0;
  }
  const int middle = max_drafts_ / 2;
  return middle >= 1 && !costs_.knows_forward(middle + 1) ? middle : -1;
}

int BlockPolicy::next_drafts() {
  if (max_drafts_ == 0) {
    return 0;
  }
  if (const int unknown = explore_costs(); unknown >= 0) {
    return unknown;
  }
  std::array<double, kMaxDrafts> estimate{};
  for (int k = 0; k < max_drafts_; ++k) {
    estimate[static_cast<size_t>(k)] = conditional(k);
  }
  const int best = best_block(costs_, estimate, max_drafts_).drafts;
  if (best > best_ && best_ >= 0) {
    longer_.reset();  // the last look, or the text, brought something
  }
  best_ = best;
  if (best < max_drafts_ && longer_.due()) {
    longer_.lost();  // until the estimate says otherwise
    return best == 0 ? std::max(1, max_drafts_ / 2) : max_drafts_;
  }
  if (best > 0 && plain_.due()) {
    return 0;
  }
  return best;
}

void BlockPolicy::observe(int drafted, int accepted, int judged) {
  OCTET_CHECK(accepted <= drafted && judged <= drafted);
  for (int k = 0; k < judged; ++k) {
    const auto row = static_cast<size_t>(k);
    trials_[row] = trials_[row] * kMemory + 1.0;
    hits_[row] = hits_[row] * kMemory + (k < accepted ? 1.0 : 0.0);
  }
}

}  // namespace octet
