#include "octet/speculation/step_costs.h"

#include <algorithm>

#include "octet/base/check.h"

namespace octet {
namespace {

// So many observations of a cost make it one to judge by.
constexpr int kSureCount = 2;

}  // namespace

void StepCosts::Samples::add(double ms, int64_t pass) {
  if (pass - last_pass > kStalePasses) {
    count = 0;
  }
  recent[static_cast<size_t>(count) % recent.size()] = ms;
  ++count;
  last_pass = pass;
  std::array<double, 15> sorted = recent;
  const auto used = std::min<size_t>(static_cast<size_t>(count), sorted.size());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((used - 1) / 2);
  std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(used));
  median = *middle;
}

void StepCosts::observe_forward(int rows, double ms) {
  OCTET_CHECK(rows >= 1);
  ++passes_;
  if (rows <= kMaxRows) {
    forward_[static_cast<size_t>(rows)].add(ms, passes_);
  }
}

void StepCosts::observe_draft(double ms) {
  draft_.add(ms, passes_);
}

void StepCosts::observe_look(double ms) {
  look_.add(ms, passes_);
}

int64_t StepCosts::forward_age(int rows) const {
  return passes_ - forward_[static_cast<size_t>(rows)].last_pass;
}

bool StepCosts::knows_forward(int rows) const {
  return forward_[static_cast<size_t>(rows)].count > 0;
}

bool StepCosts::sure_of_forward(int rows) const {
  return forward_[static_cast<size_t>(rows)].count >= kSureCount;
}

double StepCosts::forward_ms(int rows) const {
  if (knows_forward(rows)) {
    return forward_[static_cast<size_t>(rows)].median;
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
    return forward_[static_cast<size_t>(has_below ? below : above)].median;
  }
  const double low = forward_[static_cast<size_t>(below)].median;
  const double high = forward_[static_cast<size_t>(above)].median;
  return low +
         (high - low) * static_cast<double>(rows - below) / static_cast<double>(above - below);
}

}  // namespace octet
