#include "octet/speculation/company_policy.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "octet/base/check.h"

namespace octet {
namespace {

// Steps between probes, first and at most: without drafting one sequence drafts, with drafting
// nobody does. Each costs less than a step.
constexpr int64_t kFirstProbe = 48;
constexpr int64_t kLastProbe = 768;

// Drafts of each sequence in looks at what more rows cost, and how often each is tried for a number
// of sequences before what is known has to do.
constexpr std::array<int, 4> kLookDrafts = {1, 2, 4, kMaxDrafts};
constexpr int kLooks = 2;

// The purse: what it begins with and holds or owes at most, in plain steps, and the share of time
// that fills it.
constexpr double kFirstPurse = 2.0;
constexpr double kMostPurse = 6.0;
constexpr double kPurseShare = 0.01;

// Acceptance before anything was seen, how many observations it weighs, and the share of the past
// that one more observation keeps.
constexpr double kAverageAcceptance = 0.7;
constexpr double kAverageWeight = 2.0;
constexpr double kPlaceMemory = 0.99;
// And the share that a step keeps, whether it drafted or not: what was found wrong long ago is
// tried again.
constexpr double kStepMemory = 0.999;

/// One draft that might join the step.
struct Offer {
  double gain = 0.0;  // probability that it and the drafts before it are right: tokens that it adds
  size_t member = 0;
  int row = 0;
};

/// So many drafts for each, as far as each may.
std::vector<int> everybody(std::span<const CompanyMember> members, int drafts) {
  std::vector<int> plan;
  for (const CompanyMember& member : members) {
    plan.push_back(std::min(member.most, drafts));
  }
  return plan;
}

int64_t sum(const std::vector<int>& plan) {
  return std::accumulate(plan.begin(), plan.end(), int64_t{0});
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

double CostCurve::least(int64_t amount) const {
  double most = 0.0;
  for (const auto& [key, point] : points_) {
    if (point.amount() <= static_cast<double>(amount)) {
      most = std::max(most, point.ms());
    }
  }
  return most;
}

/// How drafts in that place fare when those before them are right. A place is expected to do as
/// well as the one before it, until it was seen.
double CompanyPolicy::expected(int place) const {
  double known = kAverageAcceptance;
  for (int k = 0; k <= place; ++k) {
    const Record& seen = places_[static_cast<size_t>(k)];
    known = (seen.hits + kAverageWeight * known) / (seen.trials + kAverageWeight);
  }
  return known;
}

/// Tokens that each further draft of the member adds.
std::vector<double> CompanyPolicy::gains(const CompanyMember& member) const {
  std::vector<double> all;
  double joint = 1.0;
  for (int k = 0; k < member.most; ++k) {
    const double others = expected(k);
    joint *= member.policy != nullptr ? member.policy->conditional(k, others) : others;
    all.push_back(joint);
  }
  return all;
}

std::vector<int> CompanyPolicy::best(std::span<const CompanyMember> members, int64_t other_rows)
    const {
  std::vector<Offer> offers;
  for (size_t i = 0; i < members.size(); ++i) {
    const std::vector<double> own = gains(members[i]);
    for (size_t k = 0; k < own.size(); ++k) {
      offers.push_back({own[k], i, static_cast<int>(k)});
    }
  }
  // Within a member gains fall with the row, so every beginning of the list is a valid plan.
  std::stable_sort(offers.begin(), offers.end(), [](const Offer& a, const Offer& b) {
    return a.gain > b.gain || (a.gain == b.gain && a.row < b.row);
  });
  // Most tokens for the time. Rows of prompts bring none and would make every draft look cheap: in
  // their company a draft must be worth more than it adds, by what a token costs without them.
  const int64_t plain_rows = std::ssize(members) + other_rows;
  auto tokens = static_cast<double>(members.size());
  const double token_ms = forward_.at(std::ssize(members)) / tokens;
  const auto worth = [&](double ms) {
    return other_rows == 0 ? tokens / std::max(ms, 1e-9) : tokens * token_ms - ms;
  };
  double best_worth = worth(forward_.at(plain_rows));
  std::vector<int> drafts(members.size(), 0);
  std::vector<int> best_drafts = drafts;
  int64_t rows = plain_rows;
  int64_t drafting = 0;
  for (const Offer& offer : offers) {
    ++rows;
    tokens += offer.gain;
    drafting += offer.row == 0 ? 1 : 0;
    drafts[offer.member] = offer.row + 1;
    const double now = worth(forward_.at(rows) + draft_.at(drafting));
    if (now > best_worth) {
      best_worth = now;
      best_drafts = drafts;
    }
  }
  return best_drafts;
}

/// Whether a step of so many rows or more could pay, if rows beyond those known cost nothing.
bool CompanyPolicy::promising(std::span<const CompanyMember> members, int64_t rows) const {
  auto tokens = static_cast<double>(members.size());
  const double plain_rate = tokens / std::max(forward_.at(std::ssize(members)), 1e-9);
  for (const CompanyMember& member : members) {
    for (const double gain : gains(member)) {
      tokens += gain;
    }
  }
  const double cost = forward_.least(rows) + draft_.least(std::ssize(members));
  return tokens / std::max(cost, 1e-9) > plain_rate;
}

/// A plan whose cost is worth knowing; empty: none is. From few drafts to many, so that dear rows
/// are noticed early.
std::vector<int> CompanyPolicy::look(std::span<const CompanyMember> members) {
  const int64_t count = std::ssize(members);
  for (const int drafts : kLookDrafts) {
    std::vector<int> plan = everybody(members, drafts);
    const int64_t rows = count + sum(plan);
    int& tried = looks_[{count, drafts}];
    if (forward_.knows(rows) || tried >= kLooks) {
      continue;  // drafts may come out fewer than planned, so a look may teach another place
    }
    if (!promising(members, rows)) {
      break;
    }
    ++tried;
    return plan;
  }
  return {};
}

bool CompanyPolicy::probe_due(bool drafting) {
  if (drafting != drafted_ || distance_ == 0) {
    drafted_ = drafting;
    distance_ = std::max(distance_, kFirstProbe);
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
  const int64_t count = std::ssize(members);
  std::vector<int> plain(members.size(), 0);
  const bool unknown = other_rows == 0 && !forward_.knows(count);
  if (unknown || purse_ms_ < 0.0 || sum(everybody(members, kMaxDrafts)) == 0) {
    return plain;
  }
  if (other_rows == 0) {
    if (std::vector<int> plan = look(members); !plan.empty()) {
      return plan;
    }
  }
  std::vector<int> chosen = best(members, other_rows);
  const bool drafting = chosen != plain;
  if (other_rows == 0 && probe_due(drafting)) {
    if (!drafting) {
      size_t member = turn_++ % members.size();
      while (members[member].most == 0) {  // one of them may draft, else the plan was made above
        member = turn_++ % members.size();
      }
      plain[member] = members[member].most;
    }
    return plain;
  }
  return chosen;
}

void CompanyPolicy::learn(std::span<const DraftFate> fates) {
  for (Record& place : places_) {
    place.hits *= kStepMemory;
    place.trials *= kStepMemory;
  }
  for (const DraftFate& fate : fates) {
    for (int k = 0; k < std::min(fate.judged, kMaxDrafts); ++k) {
      Record& place = places_[static_cast<size_t>(k)];
      place.hits = place.hits * kPlaceMemory + (k < fate.accepted ? 1.0 : 0.0);
      place.trials = place.trials * kPlaceMemory + 1.0;
    }
  }
}

void CompanyPolicy::observe(const CompanyStep& step) {
  if (step.prompt_rows == 0) {
    forward_.observe(step.rows, step.forward_ms);
  }
  if (step.drafting > 0) {
    draft_.observe(step.drafting, step.draft_ms);
  }
  learn(step.fates);
  account(step);
}

/// What the step cost beyond plain steps for its tokens comes out of the purse, or goes into it.
void CompanyPolicy::account(const CompanyStep& step) {
  if (!forward_.knows(step.sequences)) {
    return;
  }
  const double plain_ms = forward_.at(step.sequences);
  if (!std::exchange(purse_given_, true)) {
    purse_ms_ = kFirstPurse * plain_ms;
  }
  const double forward_ms = step.prompt_rows == 0 ? step.forward_ms : forward_.at(step.rows);
  const double ms = forward_ms + step.draft_ms;
  purse_ms_ += kPurseShare * ms;
  if (step.drafting > 0 && step.planned) {
    const double tokens = static_cast<double>(step.tokens) / static_cast<double>(step.sequences);
    purse_ms_ += tokens * plain_ms - ms;
  }
  // A debt has an end, too: a step that something else held up says nothing about drafting.
  purse_ms_ = std::clamp(purse_ms_, -kMostPurse * plain_ms, kMostPurse * plain_ms);
}

}  // namespace octet
