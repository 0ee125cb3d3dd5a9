#include "octet/engine/acceptance_statistics.h"

#include <algorithm>
#include <numeric>

namespace octet {
namespace {

template <size_t kSize>
void add_all(std::array<int64_t, kSize>& to, const std::array<int64_t, kSize>& from) {
  for (size_t i = 0; i < kSize; ++i) {
    to[i] += from[i];
  }
}

}  // namespace

void AcceptanceStatistics::add(const SequenceStep& step) {
  if (step.prompt || step.published == 0) {
    return;
  }
  ++steps;
  published += step.published;
  if (step.forced > 0) {
    const int certain = step.published_drafts();
    forced += certain;
    ++histogram[static_cast<size_t>(step.published - certain)];
    return;  // a step's rows are all forced or all guessed
  }
  drafted += step.drafted;
  accepted += step.published_drafts();
  ++histogram[static_cast<size_t>(step.published)];
  if (step.drafted > 0) {
    ++drafting[static_cast<size_t>(step.drafted)][static_cast<size_t>(step.published_drafts())];
  }
  // Row k decides token k + 1 of the step, so it is judged when that token was published.
  const int judged = std::min(step.drafted, step.published);
  for (int k = 0; k < judged; ++k) {
    ++judged_rows[static_cast<size_t>(k)];
    accepted_rows[static_cast<size_t>(k)] += k < step.accepted ? 1 : 0;
  }
}

void AcceptanceStatistics::add(const AcceptanceStatistics& other) {
  steps += other.steps;
  published += other.published;
  drafted += other.drafted;
  accepted += other.accepted;
  forced += other.forced;
  add_all(judged_rows, other.judged_rows);
  add_all(accepted_rows, other.accepted_rows);
  add_all(histogram, other.histogram);
  for (size_t drafts = 0; drafts < drafting.size(); ++drafts) {
    add_all(drafting[drafts], other.drafting[drafts]);
  }
}

int64_t AcceptanceStatistics::drafting_steps() const {
  int64_t count = 0;
  for (const auto& by_accepted : drafting) {
    count += std::accumulate(by_accepted.begin(), by_accepted.end(), int64_t{0});
  }
  return count;
}

double AcceptanceStatistics::tokens_per_drafting_step() const {
  const int64_t count = drafting_steps();
  return count > 0 ? 1.0 + static_cast<double>(accepted) / static_cast<double>(count) : 0.0;
}

double AcceptanceStatistics::tokens_per_step() const {
  return steps > 0 ? static_cast<double>(published) / static_cast<double>(steps) : 0.0;
}

double AcceptanceStatistics::conditional(int k) const {
  const auto at = static_cast<size_t>(k);
  return judged_rows[at] > 0
             ? static_cast<double>(accepted_rows[at]) / static_cast<double>(judged_rows[at])
             : 0.0;
}

double AcceptanceStatistics::joint(int k) const {
  double product = 1.0;
  for (int j = 0; j <= k; ++j) {
    product *= conditional(j);
  }
  return product;
}

double AcceptanceStatistics::mean_acceptance_length() const {
  if (steps == 0) {
    return 0.0;
  }
  double length = 1.0;
  double product = 1.0;
  for (int k = 0; k < kMaxDrafts; ++k) {
    product *= conditional(k);
    length += product;
  }
  return length;
}

int AcceptanceStatistics::rows() const {
  const auto last =
      std::find_if(judged_rows.rbegin(), judged_rows.rend(), [](int64_t n) { return n > 0; });
  return static_cast<int>(judged_rows.rend() - last);
}

}  // namespace octet
