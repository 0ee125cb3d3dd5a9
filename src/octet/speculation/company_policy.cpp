#include "octet/speculation/company_policy.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "octet/base/check.h"

namespace octet {
namespace {

// Steps between looks at the other way of stepping, first and at most: as in block_policy.cpp. A
// look costs about a step, so they bound the cost of probing to 2 %, falling to a tenth of that.
constexpr int64_t kFirstProbe = 48;
constexpr int64_t kLastProbe = 768;

// Full steps tried for a number of sequences before what is known has to do.
constexpr int kLooks = 3;

// Conditional acceptance of a sequence without estimates.
constexpr double kAverageAcceptance = 0.7;

/// One draft that might join the step.
struct Offer {
  double gain = 0.0;  // probability that it and the drafts before it are right: tokens that it adds
  size_t member = 0;
  int row = 0;
};

std::vector<Offer> offers(std::span<const CompanyMember> members) {
  std::vector<Offer> all;
  for (size_t i = 0; i < members.size(); ++i) {
    double joint = 1.0;
    for (int k = 0; k < members[i].most; ++k) {
      joint *=
          members[i].policy != nullptr ? members[i].policy->conditional(k) : kAverageAcceptance;
      all.push_back({joint, i, k});
    }
  }
  // Within a member gains fall with the row, so every beginning of the list is a valid plan.
  std::stable_sort(all.begin(), all.end(), [](const Offer& a, const Offer& b) {
    return a.gain > b.gain || (a.gain == b.gain && a.row < b.row);
  });
  return all;
}

std::vector<int> everything(std::span<const CompanyMember> members) {
  std::vector<int> plan;
  for (const CompanyMember& member : members) {
    plan.push_back(member.most);
  }
  return plan;
}

}  // namespace

int64_t CostCurve::bucket(int64_t amount) {
  // Exact up to 16, then four buckets for every doubling.
  if (amount <= 16) {
    return amount;
  }
  return 17 + static_cast<int64_t>(4.0 * std::log2(static_cast<double>(amount) / 16.0));
}

double CostCurve::Point::ms() const {
  const auto used = std::min<int64_t>(count, std::ssize(recent));
  std::vector<double> sorted(recent.begin(), recent.begin() + used);
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2];
}

double CostCurve::Point::amount() const {
  const auto used = std::min<int64_t>(count, std::ssize(amounts));
  return std::accumulate(amounts.begin(), amounts.begin() + used, 0.0) / static_cast<double>(used);
}

void CostCurve::observe(int64_t amount, double ms) {
  OCTET_CHECK(amount >= 1);
  Point& point = points_[bucket(amount)];
  const auto at = static_cast<size_t>(point.count) % point.recent.size();
  point.recent[at] = ms;
  point.amounts[at] = static_cast<double>(amount);
  ++point.count;
}

double CostCurve::at(int64_t amount) const {
  if (points_.empty()) {
    return 0.0;
  }
  const auto wanted = static_cast<double>(amount);
  const auto above = std::ranges::find_if(points_, [&](const auto& entry) {
    return entry.second.amount() >= wanted;
  });
  if (above == points_.end()) {
    const Point& last = points_.rbegin()->second;
    return last.ms() * wanted / last.amount();
  }
  const Point& high = above->second;
  if (above == points_.begin()) {
    return high.ms();
  }
  const Point& low = std::prev(above)->second;
  const double share = (wanted - low.amount()) / std::max(1e-9, high.amount() - low.amount());
  return low.ms() + (high.ms() - low.ms()) * share;
}

std::vector<int> CompanyPolicy::best(std::span<const CompanyMember> members, int64_t other_rows)
    const {
  const int64_t plain_rows = std::ssize(members) + other_rows;
  auto tokens = static_cast<double>(members.size());
  double best_rate = tokens / std::max(forward_.at(plain_rows), 1e-9);
  std::vector<int> drafts(members.size(), 0);
  std::vector<int> best_drafts = drafts;
  int64_t rows = plain_rows;
  int64_t drafting = 0;
  for (const Offer& offer : offers(members)) {
    ++rows;
    tokens += offer.gain;
    drafting += offer.row == 0 ? 1 : 0;
    drafts[offer.member] = offer.row + 1;
    const double rate = tokens / std::max(forward_.at(rows) + draft_.at(drafting), 1e-9);
    if (rate > best_rate) {
      best_rate = rate;
      best_drafts = drafts;
    }
  }
  return best_drafts;
}

bool CompanyPolicy::probe_due(bool drafting) {
  if (drafting != drafted_ || distance_ == 0) {
    drafted_ = drafting;
    distance_ = kFirstProbe;
    left_ = distance_;
  }
  if (--left_ > 0) {
    return false;
  }
  distance_ = std::min(2 * distance_, kLastProbe);
  left_ = distance_;
  return true;
}

std::vector<int> CompanyPolicy::plan(std::span<const CompanyMember> members, int64_t other_rows) {
  std::vector<int> full = everything(members);
  std::vector<int> plain(members.size(), 0);
  const int64_t drafts = std::accumulate(full.begin(), full.end(), int64_t{0});
  if (drafts == 0) {
    return plain;
  }
  const int64_t count = std::ssize(members);
  if (other_rows == 0 && !forward_.knows(count)) {
    return plain;
  }
  // Drafts may come out fewer than planned, so a look may teach another place of the curve.
  if (other_rows == 0 && !forward_.knows(count + drafts) && looks_[count] < kLooks) {
    ++looks_[count];
    return full;
  }
  std::vector<int> chosen = best(members, other_rows);
  const bool drafting = chosen != plain;
  if (other_rows == 0 && probe_due(drafting)) {
    return drafting ? plain : full;
  }
  return chosen;
}

void CompanyPolicy::observe(int64_t rows, double forward_ms, int64_t drafting, double draft_ms) {
  forward_.observe(rows, forward_ms);
  if (drafting > 0) {
    draft_.observe(drafting, draft_ms);
  }
}

}  // namespace octet
