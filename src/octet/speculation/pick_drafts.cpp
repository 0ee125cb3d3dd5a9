#include "octet/speculation/pick_drafts.h"

#include <cmath>

#include "octet/base/check.h"
#include "octet/sampling/top_k.h"

namespace octet {

namespace {

/// What the drafter's rows mean.
struct DraftColumns {
  float softcap = 0.0F;
  TokenColumns tokens;
};

// A token so far below the best one moves a confidence by less than a thousandth.
constexpr float kNegligible = 10.0F;

struct Guess {
  TokenId token = 0;
  float confidence = 0.0F;
};

/// The likeliest token and its share of the probability of a few rivals at temperature 1: the best
/// ones of classes of the vocabulary stand for all, because the rest moves it little.
Guess likeliest(std::span<const float> row, const DraftColumns& of) {
  const auto capped = [&](float logit) {
    return of.softcap > 0.0F ? of.softcap * std::tanh(logit / of.softcap) : logit;
  };
  const TokenId best = argmax(row);
  const float greatest = capped(row[static_cast<size_t>(best)]);
  const float least = row[static_cast<size_t>(best)] - kNegligible;
  float sum = 0.0F;
  for (const float rival : greatest_by_class(row)) {
    sum += rival > least ? std::exp(capped(rival) - greatest) : 0.0F;
  }
  return {of.tokens.token(best), sum > 0.0F ? 1.0F / sum : 0.0F};
}

/// A draft that will be compared with the target's own choice at its position.
Guess pick_to_compare(
    const DraftTask& task, std::span<const float> row, int j, const DraftColumns& of
) {
  const DraftChoice choice = task.sampler->greedy() ? DraftChoice::kArgmax : task.choices->row(j);
  if (choice == DraftChoice::kArgmax) {
    return task.wants_confidence ? likeliest(row, of) : Guess{of.tokens.token(argmax(row)), 0.0F};
  }
  const Distribution q = task.sampler->distribution(row, of.softcap, of.tokens);
  const bool asks = choice == DraftChoice::kBySureness || task.wants_confidence;
  const double greatest = asks ? q.greatest_probability() : 0.0;
  const bool sure = choice == DraftChoice::kBySureness &&
                    greatest >= static_cast<double>(task.choices->sure_from);
  const int64_t position = std::ssize(task.tokens) + j;
  const TokenId token = sure ? of.tokens.token(argmax(row))
                             : q.draw(task.sampler->noise(position, NoisePurpose::kToken));
  return {token, static_cast<float>(greatest)};
}

}  // namespace

void pick_drafts(const DraftTask& task, Rows logits, float softcap, TokenColumns columns) {
  OCTET_CHECK(logits.rows >= task.count);
  const Sampler& sampler = *task.sampler;
  const auto first_position = std::ssize(task.tokens);
  PenaltyWindow window = *task.penalties;
  for (int j = 0; j < task.count; ++j) {
    const std::span<float> row(logits.row(j), static_cast<size_t>(logits.cols));
    sampler.adjust(row, window, columns);
    TokenId token = 0;
    if (task.rule == VerifyRule::kRatio && !sampler.greedy()) {
      const auto& kept = task.out->logits.emplace_back(row.begin(), row.end());
      const Distribution& q =
          task.out->q.emplace_back(sampler.distribution(kept, softcap, columns));
      token = q.draw(sampler.noise(first_position + j, NoisePurpose::kRatioDraft));
    } else {
      const Guess guess = pick_to_compare(task, row, j, {softcap, columns});
      token = guess.token;
      if (task.wants_confidence) {
        task.out->confidence.push_back(guess.confidence);
      }
    }
    task.out->tokens.push_back(token);
    window.push(token);
  }
}

}  // namespace octet
