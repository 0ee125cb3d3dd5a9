// What a sampler must do, checked against a slow and obvious float64 reading of the definitions,
// over random rows.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "octet/sampling/distribution.h"
#include "octet/sampling/noise.h"
#include "octet/sampling/penalty_window.h"
#include "octet/sampling/sampler.h"
#include "octet/sampling/token_columns.h"
#include "octet/sampling/top_k.h"
#include "support/goodness_of_fit.h"

namespace octet {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

/// Logits on a coarse grid, so that ties happen, with some tokens out.
std::vector<float> random_logits(std::mt19937& random, int64_t vocabulary) {
  std::normal_distribution<float> normal(0.0F, 4.0F);
  std::vector<float> logits(static_cast<size_t>(vocabulary));
  const bool coarse = random() % 2 == 0;
  const bool holes = random() % 3 == 0;
  for (float& logit : logits) {
    logit = normal(random);
    logit = coarse ? std::round(logit) : logit;
    if (holes && random() % 5 == 0) {
      logit = random() % 2 == 0 ? kMinusInfinity : std::numeric_limits<float>::quiet_NaN();
    }
  }
  logits[random() % logits.size()] = 1.0F;
  return logits;
}

SamplingParams random_params(std::mt19937& random, int64_t vocabulary) {
  std::uniform_real_distribution<float> unit(0.0F, 1.0F);
  SamplingParams params;
  params.temperature = 0.2F + 2.0F * unit(random);
  if (random() % 2 == 0) {
    params.top_k = 1 + static_cast<int64_t>(random()) % (vocabulary + 2);
  }
  if (random() % 2 == 0) {
    params.top_p = 0.05F + 0.94F * unit(random);
  }
  if (random() % 2 == 0) {
    params.min_p = 0.5F * unit(random);
  }
  params.seed = random();
  return params;
}

/// Temperature, top-k, top-p, min-p, one after the other, each on the renormalised rest of the one
/// before.
std::vector<double> naive_distribution(
    const std::vector<float>& logits, const SamplingParams& params
) {
  std::vector<TokenId> order;
  for (TokenId t = 0; t < std::ssize(logits); ++t) {
    if (logits[static_cast<size_t>(t)] > kMinusInfinity) {
      order.push_back(t);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  if (params.top_k > 0 && params.top_k < std::ssize(order)) {
    order.resize(static_cast<size_t>(params.top_k));
  }
  const auto renormalised = [&] {
    std::vector<double> p(order.size());
    const double greatest = static_cast<double>(logits[static_cast<size_t>(order[0])]);
    for (size_t i = 0; i < order.size(); ++i) {
      const double l = static_cast<double>(logits[static_cast<size_t>(order[i])]);
      p[i] = std::exp((l - greatest) / static_cast<double>(params.temperature));
    }
    const double sum = std::accumulate(p.begin(), p.end(), 0.0);
    for (double& x : p) {
      x /= sum;
    }
    return p;
  };
  std::vector<double> p = renormalised();
  if (params.top_p < 1.0F) {
    double cumulated = 0.0;
    size_t kept = 0;
    while (kept < p.size() && cumulated < static_cast<double>(params.top_p)) {
      cumulated += p[kept++];
    }
    order.resize(kept);
    p = renormalised();
  }
  size_t kept = 0;
  while (kept < p.size() && p[kept] >= static_cast<double>(params.min_p) * p[0] * (1.0 - 1e-12)) {
    ++kept;
  }
  order.resize(kept);
  p = renormalised();
  std::vector<double> full(logits.size(), 0.0);
  for (size_t i = 0; i < order.size(); ++i) {
    full[static_cast<size_t>(order[i])] = p[i];
  }
  return full;
}

TEST(TopK, EqualsSortingTheRow) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const std::vector<float> logits = random_logits(random, 1 + random() % 3000);
    std::vector<Candidate> sorted;
    for (TokenId t = 0; t < std::ssize(logits); ++t) {
      if (logits[static_cast<size_t>(t)] > kMinusInfinity) {
        sorted.push_back({t, logits[static_cast<size_t>(t)]});
      }
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const Candidate& a, const Candidate& b) {
      return a.logit > b.logit;
    });
    const int64_t k = 1 + static_cast<int64_t>(random() % 100);
    sorted.resize(std::min(sorted.size(), static_cast<size_t>(k)));
    const std::vector<Candidate> found = top_k_candidates(logits, k);
    ASSERT_EQ(found.size(), sorted.size());
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i].token, sorted[i].token) << i;
    }
    EXPECT_EQ(greatest_logit(logits), sorted.front().logit);
    EXPECT_EQ(argmax(logits), sorted.front().token);
  }
}

TEST(Distribution, EqualsItsDefinition) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const int64_t vocabulary = 2 + static_cast<int64_t>(random() % 700);
    const std::vector<float> logits = random_logits(random, vocabulary);
    const SamplingParams params = random_params(random, vocabulary);
    const std::vector<double> expected = naive_distribution(logits, params);
    const Distribution distribution(logits, params);
    for (TokenId t = 0; t < vocabulary; ++t) {
      ASSERT_NEAR(distribution.probability(t), expected[static_cast<size_t>(t)], 1e-12) << t;
    }
    const double greatest = *std::max_element(expected.begin(), expected.end());
    ASSERT_NEAR(distribution.greatest_probability(), greatest, 1e-12);
  }
}

// The draw is the plain race over every token with a probability, whatever is skipped on the way.
TEST(Distribution, DrawIsTheWholeRace) {
  for (uint32_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const int64_t vocabulary = 2 + static_cast<int64_t>(random() % 3000);
    const std::vector<float> logits = random_logits(random, vocabulary);
    const SamplingParams params = random_params(random, vocabulary);
    const std::vector<double> p = naive_distribution(logits, params);
    const Distribution distribution(logits, params);
    for (int64_t position = 0; position < 5; ++position) {
      const NoiseField noise(params.seed, position, NoisePurpose::kToken);
      TokenId winner = -1;
      double best = std::numeric_limits<double>::infinity();
      for (TokenId t = 0; t < vocabulary; ++t) {
        const double time = p[static_cast<size_t>(t)] > 0.0
                                ? noise.arrival(t) / p[static_cast<size_t>(t)]
                                : std::numeric_limits<double>::infinity();
        if (time < best) {
          best = time;
          winner = t;
        }
      }
      ASSERT_EQ(distribution.draw(noise), winner);
    }
  }
}

/// A row that covers some tokens, and the whole row in which the others cannot come.
struct PartialRow {
  std::vector<TokenId> tokens;
  std::vector<float> part;
  std::vector<float> whole;
};

PartialRow random_partial_row(std::mt19937& random, int64_t vocabulary) {
  PartialRow row;
  row.whole = random_logits(random, vocabulary);
  const auto least = static_cast<TokenId>(static_cast<int64_t>(random()) % vocabulary);
  for (TokenId token = 0; token < vocabulary; ++token) {
    float& logit = row.whole[static_cast<size_t>(token)];
    if (token == least || random() % 7 == 0) {
      row.tokens.push_back(token);
      row.part.push_back(logit);
    } else {
      logit = kMinusInfinity;
    }
  }
  return row;
}

TEST(Distribution, OverSomeTokensIsTheWholeRowWithoutTheOthers) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const int64_t vocabulary = seed % 2 == 0 ? 2000 : 40;
    PartialRow row = random_partial_row(random, vocabulary);
    SamplingParams params = random_params(random, vocabulary);
    params.repetition_penalty = 1.3F;
    params.logit_bias = {{row.tokens.front(), 0.5F}, {0, kBanBias}};
    const Sampler sampler(params, vocabulary);
    PenaltyWindow window(params, {});
    for (int i = 0; i < 20; ++i) {
      window.push(static_cast<TokenId>(static_cast<int64_t>(random()) % vocabulary));
    }
    const TokenColumns columns(row.tokens);
    sampler.adjust(row.whole, window);
    sampler.adjust(row.part, window, columns);
    if (greatest_logit(row.part) > kMinusInfinity) {
      EXPECT_EQ(columns.token(argmax(row.part)), argmax(row.whole));
    }
    const float softcap = seed % 3 == 0 ? 30.0F : 0.0F;
    const Distribution part = sampler.distribution(row.part, softcap, columns);
    const Distribution whole = sampler.distribution(row.whole, softcap);
    const std::vector<float> target_row = random_logits(random, vocabulary);
    const Distribution target = sampler.distribution(target_row);
    for (int64_t position = 0; position < 20; ++position) {
      const NoiseField noise = sampler.noise(position, NoisePurpose::kToken);
      if (greatest_logit(row.part) > kMinusInfinity) {
        EXPECT_EQ(part.draw(noise), whole.draw(noise));
        EXPECT_EQ(target.draw_residual(part, noise), target.draw_residual(whole, noise));
        EXPECT_EQ(part.draw_residual(target, noise), whole.draw_residual(target, noise));
      }
      const auto token = static_cast<TokenId>(static_cast<int64_t>(random()) % vocabulary);
      // The sums run over the same values in another grouping.
      const double expected = whole.probability(token);
      EXPECT_NEAR(part.probability(token), expected, 1e-12 + 1e-9 * expected);
    }
  }
}

TEST(Distribution, SoftCapIsAppliedToTheLogits) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    const int64_t vocabulary = 2 + static_cast<int64_t>(random() % 600);
    std::vector<float> logits = random_logits(random, vocabulary);
    for (float& logit : logits) {
      logit *= 8.0F;
    }
    const SamplingParams params = random_params(random, vocabulary);
    const Distribution capped(logits, params, 30.0F);
    std::vector<float> by_hand = logits;
    for (float& logit : by_hand) {
      logit = logit > kMinusInfinity ? 30.0F * std::tanh(logit / 30.0F) : logit;
    }
    const Distribution expected(by_hand, params);
    double difference = 0.0;
    for (TokenId t = 0; t < vocabulary; ++t) {
      difference += std::abs(capped.probability(t) - expected.probability(t));
    }
    // Rounding to float may move a token across a border of top-p or min-p, or make a tie; then
    // little moves.
    EXPECT_LT(difference, 0.1);
  }
}

TEST(Distribution, StaysDefinedWhenNothingMayCome) {
  const std::vector<float> nothing(10, kMinusInfinity);
  const std::vector<float> broken(10, std::numeric_limits<float>::quiet_NaN());
  SamplingParams params;
  params.temperature = 1.0F;
  for (const auto& logits : {nothing, broken}) {
    const Distribution distribution(logits, params);
    EXPECT_EQ(distribution.draw(NoiseField(1, 2, NoisePurpose::kToken)), 0);
    EXPECT_EQ(distribution.probability(0), 1.0);
    EXPECT_EQ(argmax(logits), 0);
  }
}

TEST(Distribution, ExtremeTemperaturesStayFinite) {
  const std::vector<float> logits = {-30.0F, 30.0F, 29.999F};
  SamplingParams params;
  params.temperature = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(Distribution(logits, params).draw(NoiseField(1, 2, NoisePurpose::kToken)), 1);
  params.temperature = 100.0F;
  const Distribution flat(logits, params);
  EXPECT_NEAR(flat.probability(0) + flat.probability(1) + flat.probability(2), 1.0, 1e-12);
}

TEST(Distribution, DrawsFollowTheProbabilities) {
  std::mt19937 random(11);
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    const int64_t vocabulary =
        round % 2 == 0 ? 12 : 600;  // inside one noise group, and across three
    std::vector<float> logits = random_logits(random, vocabulary);
    SamplingParams params = random_params(random, vocabulary);
    const Distribution distribution(logits, params);
    std::vector<int64_t> counts(static_cast<size_t>(vocabulary), 0);
    std::vector<double> probability;
    for (TokenId t = 0; t < vocabulary; ++t) {
      probability.push_back(distribution.probability(t));
    }
    for (int64_t position = 0; position < 20000; ++position) {
      const NoiseField noise(params.seed, position, NoisePurpose::kToken);
      ++counts[static_cast<size_t>(distribution.draw(noise))];
    }
    EXPECT_LT(test::misfit(counts, probability), test::kFalseAlarmDeviations);
  }
}

TEST(Distribution, ResidualFollowsThePositivePart) {
  std::mt19937 random(12);
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    const int64_t vocabulary = 9;
    const std::vector<float> logits_p = random_logits(random, vocabulary);
    const std::vector<float> logits_q = random_logits(random, vocabulary);
    SamplingParams params = random_params(random, vocabulary);
    params.temperature = 3.0F;
    const Distribution p(logits_p, params);
    const Distribution q(logits_q, params);
    std::vector<double> residual;
    double sum = 0.0;
    for (TokenId t = 0; t < vocabulary; ++t) {
      residual.push_back(std::max(0.0, p.probability(t) - q.probability(t)));
      sum += residual.back();
    }
    for (TokenId t = 0; t < vocabulary; ++t) {
      auto& weight = residual[static_cast<size_t>(t)];
      weight = sum > 0.0 ? weight / sum : p.probability(t);
    }
    std::vector<int64_t> counts(static_cast<size_t>(vocabulary), 0);
    for (int64_t position = 0; position < 20000; ++position) {
      const NoiseField noise(7, position, NoisePurpose::kRatioResidual);
      ++counts[static_cast<size_t>(p.draw_residual(q, noise))];
    }
    EXPECT_LT(test::misfit(counts, residual), test::kFalseAlarmDeviations);
  }
}

TEST(Distribution, ResidualOfEqualsIsTheDistributionItself) {
  const std::vector<float> logits = {1.0F, 2.0F, 0.5F};
  SamplingParams params;
  params.temperature = 1.0F;
  const Distribution p(logits, params);
  const NoiseField noise(3, 4, NoisePurpose::kRatioResidual);
  EXPECT_EQ(p.draw_residual(p, noise), p.draw(noise));
}

// Arrival times of one group are built from its minimum; each must still be Exp(1), and independent
// of the others.
TEST(Noise, ArrivalTimesAreIndependentExponentials) {
  const std::vector<TokenId> tokens = {0, 1, 255, 256, 1000};
  constexpr int kBins = 16;
  constexpr int64_t kDraws = 40000;
  std::vector<std::vector<int64_t>> pairs(tokens.size(), std::vector<int64_t>(kBins * kBins, 0));
  for (int64_t position = 0; position < kDraws; ++position) {
    const NoiseField noise(99, position, NoisePurpose::kToken);
    std::vector<int> bins;
    for (const TokenId token : tokens) {
      bins.push_back(
          std::min(kBins - 1, static_cast<int>(kBins * -std::expm1(-noise.arrival(token))))
      );
    }
    for (size_t i = 0; i < tokens.size(); ++i) {
      const size_t next = (i + 1) % tokens.size();
      ++pairs[i][static_cast<size_t>(bins[i] * kBins + bins[next])];
    }
  }
  const std::vector<double> uniform(kBins * kBins, 1.0 / (kBins * kBins));
  for (const auto& counts : pairs) {
    EXPECT_LT(test::misfit(counts, uniform), test::kFalseAlarmDeviations);
  }
}

TEST(Noise, GroupMinimumIsTheLeastOfItsGroup) {
  for (int64_t position = 0; position < 200; ++position) {
    const NoiseField noise(4, position, NoisePurpose::kToken);
    const GroupMinimum minimum = noise.group_minimum(2);
    EXPECT_GE(minimum.token, 2 * kNoiseGroup);
    EXPECT_LT(minimum.token, 3 * kNoiseGroup);
    for (int64_t t = 2 * kNoiseGroup; t < 3 * kNoiseGroup; ++t) {
      const double time = noise.arrival(static_cast<TokenId>(t));
      EXPECT_TRUE(time > minimum.time || (time == minimum.time && t == minimum.token));
    }
  }
}

TEST(Noise, PurposesAreUnrelated) {
  std::vector<int64_t> counts(4, 0);
  for (int64_t position = 0; position < 20000; ++position) {
    const bool a = NoiseField(1, position, NoisePurpose::kToken).arrival(3) < std::log(2.0);
    const bool b = NoiseField(1, position, NoisePurpose::kRatioDraft).arrival(3) < std::log(2.0);
    ++counts[(a ? 2U : 0U) + (b ? 1U : 0U)];
  }
  EXPECT_LT(test::misfit(counts, {0.25, 0.25, 0.25, 0.25}), test::kFalseAlarmDeviations);
}

/// Counts the window from the text itself.
std::vector<float> naive_penalties(
    std::vector<float> logits,
    const SamplingParams& params,
    const std::vector<TokenId>& prompt,
    const std::vector<TokenId>& reply
) {
  std::vector<TokenId> scope;
  if (params.penalty_scope == PenaltyScope::kPromptAndReply) {
    scope = prompt;
  }
  scope.insert(scope.end(), reply.begin(), reply.end());
  if (params.penalty_last_n > 0 && params.penalty_last_n < std::ssize(scope)) {
    scope.erase(scope.begin(), scope.end() - params.penalty_last_n);
  }
  std::map<TokenId, int> counts;
  for (const TokenId token : scope) {
    ++counts[token];
  }
  for (const auto& [token, count] : counts) {
    float& logit = logits[static_cast<size_t>(token)];
    logit = logit > 0.0F ? logit / params.repetition_penalty : logit * params.repetition_penalty;
    logit -= params.presence_penalty + params.frequency_penalty * static_cast<float>(count);
  }
  return logits;
}

TEST(Penalties, EqualCountingTheText) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> penalty(-2.0F, 2.0F);
    SamplingParams params;
    params.repetition_penalty = 1.0F + std::abs(penalty(random));
    params.presence_penalty = penalty(random);
    params.frequency_penalty = penalty(random);
    params.penalty_scope = random() % 2 == 0 ? PenaltyScope::kReply : PenaltyScope::kPromptAndReply;
    params.penalty_last_n = static_cast<int64_t>(random() % 12);
    std::vector<TokenId> prompt(random() % 20);
    for (TokenId& token : prompt) {
      token = static_cast<TokenId>(random() % 6);
    }
    PenaltyWindow window(params, prompt);
    std::vector<TokenId> reply;
    for (int i = 0; i < 20; ++i) {
      std::vector<float> logits(6);
      for (float& logit : logits) {
        logit = penalty(random);
      }
      const std::vector<float> expected = naive_penalties(logits, params, prompt, reply);
      window.apply(logits);
      ASSERT_EQ(logits, expected) << i;
      reply.push_back(static_cast<TokenId>(random() % 6));
      window.push(reply.back());
    }
  }
}

class EvenTokensOnly : public TokenMask {
 public:
  void apply(std::span<float> logits) const override {
    for (size_t t = 1; t < logits.size(); t += 2) {
      logits[t] = kMinusInfinity;
    }
  }
};

TEST(Sampler, PenaltiesThenBiasThenMask) {
  SamplingParams params;
  params.repetition_penalty = 2.0F;
  params.logit_bias = {{0, 3.0F}, {2, kBanBias}, {1, 100.0F}};
  const Sampler sampler(params, 5);
  PenaltyWindow window(params, {});
  window.push(0);
  std::vector<float> logits = {4.0F, 0.0F, 9.0F, 1.0F, 2.0F};
  sampler.adjust(logits, window, std::make_unique<EvenTokensOnly>().get());
  // Token 0: 4 / 2 + 3, not (4 + 3) / 2; the mask wins over any bias.
  EXPECT_EQ(
      logits, (std::vector<float>{5.0F, kMinusInfinity, kMinusInfinity, kMinusInfinity, 2.0F})
  );
  EXPECT_EQ(sampler.choose(logits, 0), 0);
}

TEST(Sampler, GreedyTakesTheLowestIdOfEquals) {
  const Sampler sampler(SamplingParams{}, 4);
  EXPECT_EQ(sampler.choose(std::vector<float>{1.0F, 3.0F, 3.0F, 2.0F}, 7), 1);
  EXPECT_EQ(sampler.choose(std::vector<float>{-0.0F, 0.0F, -1.0F, 0.0F}, 7), 0);
}

TEST(Sampler, TokensOutsideTheNucleusNeverAppear) {
  SamplingParams params;
  params.temperature = 1.0F;
  params.top_p = 0.5F;
  const std::vector<float> logits = {2.0F, 1.0F, 0.0F, -1.0F};  // 0.64 alone reaches one half
  for (params.seed = 0; params.seed < 2000; ++params.seed) {
    EXPECT_EQ(Sampler(params, 4).choose(logits, 5), 0);
  }
}

}  // namespace
}  // namespace octet
