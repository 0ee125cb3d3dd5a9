#include "octet/speculation/verify.h"

#include <optional>
#include <utility>

#include "octet/base/check.h"

namespace octet {
namespace {

/// One position judged.
struct Choice {
  TokenId token = 0;
  bool accepted = false;
};

/// The ratio rule at row i, which has a draft x drawn from q: x stays with probability min(1, p(x)
/// / q(x)), else the token comes from max(p - q, 0). Three independent streams of noise: sharing
/// any of them would bias the law.
Choice judge_by_ratio(
    const Distribution& p,
    TokenId draft,
    const Distribution& q,
    const Sampler& sampler,
    int64_t position
) {
  const double u = sampler.noise(position, NoisePurpose::kRatioAccept).uniform();
  if (u * q.probability(draft) < p.probability(draft)) {
    return {draft, true};
  }
  return {p.draw_residual(q, sampler.noise(position, NoisePurpose::kRatioResidual)), false};
}

}  // namespace

Verdict verify(const Proposal& proposal, Rows logits, Judge judge) {
  const auto drafts = std::ssize(proposal.tokens);
  OCTET_CHECK(logits.rows == drafts + 1);
  // Without q the ratio rule has no ratio: comparing is exact for any draft, so it takes over.
  const bool by_ratio =
      judge.rule == VerifyRule::kRatio && !judge.sampler.greedy() && !proposal.q.empty();
  OCTET_CHECK(!by_ratio || std::ssize(proposal.q) == drafts);

  Verdict verdict;
  for (int64_t i = 0; i <= drafts; ++i) {
    const std::span<float> row(logits.row(i), static_cast<size_t>(logits.cols));
    std::optional<RowScores> scores;
    if (judge.scores >= 0) {
      scores.emplace(row, judge.scores);
    }
    judge.sampler.adjust(
        row, judge.penalties, judge.constraint != nullptr ? judge.constraint->mask() : nullptr
    );
    const int64_t position = judge.first_position + i;
    Choice choice;
    if (by_ratio && i < drafts) {
      const auto at = static_cast<size_t>(i);
      choice = judge_by_ratio(
          judge.sampler.distribution(row),
          proposal.tokens[at],
          proposal.q[at],
          judge.sampler,
          position
      );
    } else {
      choice.token = judge.sampler.choose(row, position);
      choice.accepted = i < drafts && choice.token == proposal.tokens[static_cast<size_t>(i)];
    }
    verdict.tokens.push_back(choice.token);
    if (scores) {
      verdict.scores.push_back(scores->of(choice.token));
    }
    judge.penalties.push(choice.token);
    if (judge.constraint != nullptr) {
      judge.constraint->push(choice.token);
    }
    if (!choice.accepted) {
      break;  // later rows were computed under a token that is not in the text
    }
    ++verdict.accepted;
  }
  return verdict;
}

}  // namespace octet
