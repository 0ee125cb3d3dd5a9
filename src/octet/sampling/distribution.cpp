#include "octet/sampling/distribution.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace octet {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A group is skipped when its bound lies below the best score by more than rounding can explain.
constexpr double kBoundSlack = 1e-9;

// A draft's nucleus is measured among this many of its best tokens: soft-capping a whole vocabulary
// costs more than a guess is worth.
constexpr int64_t kDraftNucleus = 1024;

/// The winner of a race so far: greatest score, lowest id among equals.
struct Leader {
  TokenId token = 0;
  double score = -kInfinity;

  void offer(TokenId candidate, double value) {
    if (value > score || (value == score && candidate < token)) {
      token = candidate;
      score = value;
    }
  }
};

}  // namespace

Distribution::Distribution(
    std::span<const float> logits, const SamplingParams& params, float softcap, TokenColumns columns
)
    : logits_(logits),
      columns_(columns),
      temperature_(static_cast<double>(params.temperature)),
      softcap_(static_cast<double>(softcap)) {
  const auto vocabulary = std::ssize(logits);
  greatest_ = scaled(greatest_logit(logits));
  floor_ = std::numeric_limits<double>::lowest();
  const bool draft_nucleus = softcap > 0.0F && params.top_p < 1.0F && params.top_k == 0;
  const int64_t top_k = draft_nucleus ? kDraftNucleus : params.top_k;
  whole_ = top_k == 0 || top_k >= vocabulary;
  if (greatest_ == -kInfinity) {  // nothing may come: stay defined
    whole_ = false;
    greatest_ = 0.0;
    candidates_ = {{columns.token(0), 0.0F}};
    return;
  }
  if (!whole_) {
    candidates_ = best(top_k);
  }
  if (params.top_p < 1.0F) {
    keep_top_p(static_cast<double>(params.top_p));
  }
  if (params.min_p > 0.0F) {
    keep_min_p(static_cast<double>(params.min_p));
  }
}

std::vector<Candidate> Distribution::best(int64_t k) const {
  std::vector<Candidate> result = top_k_candidates(logits_, k);
  for (Candidate& candidate : result) {
    candidate.token = columns_.token(candidate.token);
  }
  return result;
}

double Distribution::scaled(float logit) const {
  const auto value = static_cast<double>(logit);
  const double capped = softcap_ > 0.0 ? softcap_ * std::tanh(value / softcap_) : value;
  return capped / temperature_;
}

bool Distribution::inside(float logit) const {
  // Minus infinity and NaN are below every floor.
  return logit > -std::numeric_limits<float>::infinity() && scaled(logit) >= floor_;
}

double Distribution::log_sum() const {
  if (summed_) {
    return log_sum_;
  }
  double sum = 0.0;
  if (whole_) {
    for (const float logit : logits_) {
      sum += inside(logit) ? std::exp(scaled(logit) - greatest_) : 0.0;
    }
  } else {
    for (const Candidate& candidate : candidates_) {
      sum += std::exp(scaled(candidate.logit) - greatest_);
    }
  }
  log_sum_ = greatest_ + std::log(sum);
  summed_ = true;
  return log_sum_;
}

void Distribution::keep_top_p(double top_p) {
  const double normaliser = log_sum();
  const int64_t most = whole_ ? std::ssize(logits_) : std::ssize(candidates_);
  // The nucleus is usually small: sort a short head of the row first, more of it only when it does
  // not suffice.
  for (int64_t k = std::min<int64_t>(most, 256);; k = std::min(most, k * 8)) {
    if (whole_) {
      candidates_ = best(k);
    }
    double cumulated = 0.0;
    size_t kept = 0;
    while (kept < candidates_.size() && cumulated < top_p) {
      cumulated += std::exp(scaled(candidates_[kept].logit) - normaliser);
      ++kept;
    }
    if (cumulated >= top_p || !whole_ || k == most) {
      candidates_.resize(kept);
      break;
    }
  }
  whole_ = false;
  summed_ = false;
}

void Distribution::keep_min_p(double min_p) {
  floor_ = greatest_ + std::log(min_p);
  std::erase_if(candidates_, [this](const Candidate& c) { return scaled(c.logit) < floor_; });
  summed_ = false;
}

TokenId Distribution::draw(const NoiseField& noise) const {
  return whole_ ? draw_whole(noise) : draw_sparse(noise);
}

TokenId Distribution::draw_sparse(const NoiseField& noise) const {
  Leader leader;
  for (const Candidate& candidate : candidates_) {
    leader.offer(
        candidate.token, scaled(candidate.logit) - std::log(noise.arrival(candidate.token))
    );
  }
  return leader.token;
}

TokenId Distribution::draw_whole(const NoiseField& noise) const {
  struct Group {
    int64_t begin = 0;  // columns whose tokens share a group of the noise
    int64_t end = 0;
    GroupMinimum minimum;
    double bound = 0.0;  // no member scores more: greatest logit with the least arrival time
  };
  const auto columns = std::ssize(logits_);
  std::vector<Group> groups;
  groups.reserve(static_cast<size_t>(columns / kNoiseGroup + 1));
  size_t first = 0;
  for (int64_t begin = 0; begin < columns;) {
    const int64_t id = columns_.token(begin) / kNoiseGroup;
    int64_t end = std::min(columns, begin + kNoiseGroup);
    while (columns_.token(end - 1) / kNoiseGroup != id) {
      --end;
    }
    const GroupMinimum minimum = noise.group_minimum(id);
    const auto members =
        logits_.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    const double bound = scaled(greatest_logit(members)) - std::log(minimum.time);
    groups.push_back({begin, end, minimum, bound});
    if (bound > groups[first].bound) {
      first = groups.size() - 1;
    }
    begin = end;
  }
  Leader leader;
  const auto race = [&](const Group& group) {
    const double lead = -std::log(group.minimum.time);
    for (int64_t column = group.begin; column < group.end; ++column) {
      const float logit = logits_[static_cast<size_t>(column)];
      if (inside(logit) && scaled(logit) + lead >= leader.score - kBoundSlack) {
        const TokenId token = columns_.token(column);
        leader.offer(token, scaled(logit) - std::log(noise.arrival(token, group.minimum)));
      }
    }
  };
  race(groups[first]);  // a good leader early lets nearly all other groups be skipped
  for (size_t g = 0; g < groups.size(); ++g) {
    if (g != first && groups[g].bound >= leader.score - kBoundSlack) {
      race(groups[g]);
    }
  }
  return leader.token;
}

double Distribution::probability(TokenId token) const {
  if (whole_) {
    const int64_t column = columns_.column(token);
    if (column < 0) {
      return 0.0;
    }
    const float logit = logits_[static_cast<size_t>(column)];
    return inside(logit) ? std::exp(scaled(logit) - log_sum()) : 0.0;
  }
  for (const Candidate& candidate : candidates_) {
    if (candidate.token == token) {
      return std::exp(scaled(candidate.logit) - log_sum());
    }
  }
  return 0.0;
}

double Distribution::greatest_probability() const {
  if (!whole_) {
    return std::exp(greatest_ - log_sum());
  }
  double sum = 0.0;
  for (const Candidate& candidate : top_k_candidates(logits_, kDraftNucleus)) {
    sum += inside(candidate.logit) ? std::exp(scaled(candidate.logit) - greatest_) : 0.0;
  }
  return 1.0 / sum;
}

TokenId Distribution::draw_residual(const Distribution& q, const NoiseField& noise) const {
  struct Weighted {
    TokenId token = 0;
    double weight = 0.0;
  };
  std::vector<Weighted> residual;
  if (whole_) {
    residual.reserve(logits_.size());
    for (int64_t column = 0; column < std::ssize(logits_); ++column) {
      const TokenId token = columns_.token(column);
      residual.push_back({token, probability(token)});
    }
  } else {
    for (const Candidate& candidate : candidates_) {
      residual.push_back({candidate.token, probability(candidate.token)});
    }
  }
  if (whole_ && !q.whole_) {
    for (const Candidate& candidate : q.candidates_) {
      const int64_t column = columns_.column(candidate.token);
      if (column >= 0) {
        residual[static_cast<size_t>(column)].weight -= q.probability(candidate.token);
      }
    }
  } else {
    for (Weighted& entry : residual) {
      entry.weight -= q.probability(entry.token);
    }
  }
  Leader leader;
  for (const Weighted& entry : residual) {
    if (entry.weight > 0.0) {
      leader.offer(entry.token, std::log(entry.weight) - std::log(noise.arrival(entry.token)));
    }
  }
  return leader.score > -kInfinity ? leader.token : draw(noise);
}

}  // namespace octet
