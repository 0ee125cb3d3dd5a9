#include "octet/speculation/pick_drafts.h"

#include "octet/base/check.h"

namespace octet {

void pick_drafts(const DraftTask& task, Rows logits, float softcap) {
  OCTET_CHECK(logits.rows >= task.count);
  const Sampler& sampler = *task.sampler;
  const auto first_position = std::ssize(task.tokens);
  PenaltyWindow window = *task.penalties;
  for (int j = 0; j < task.count; ++j) {
    const std::span<float> row(logits.row(j), static_cast<size_t>(logits.cols));
    sampler.adjust(row, window);
    TokenId token = 0;
    if (sampler.greedy()) {
      token = argmax(row);
    } else if (task.rule == VerifyRule::kRatio) {
      const auto& kept = task.out->logits.emplace_back(row.begin(), row.end());
      const Distribution& q = task.out->q.emplace_back(sampler.distribution(kept, softcap));
      token = q.draw(sampler.noise(first_position + j, NoisePurpose::kRatioDraft));
    } else if (task.choices->row(j) == DraftChoice::kCoupled) {
      token = sampler.choose(row, first_position + j, softcap);
    } else {
      token = argmax(row);
    }
    task.out->tokens.push_back(token);
    window.push(token);
  }
}

}  // namespace octet
