#include "octet/speculation/pick_drafts.h"

#include "octet/base/check.h"

namespace octet {

namespace {

/// A draft that will be compared with the target's own draw at its position.
TokenId pick_to_compare(const DraftTask& task, std::span<const float> row, int j, float softcap) {
  const DraftChoice choice = task.choices->row(j);
  if (choice == DraftChoice::kArgmax) {
    return argmax(row);
  }
  const Distribution q = task.sampler->distribution(row, softcap);
  const bool sure = choice == DraftChoice::kBySureness &&
                    q.greatest_probability() >= static_cast<double>(task.choices->sure_from);
  const int64_t position = std::ssize(task.tokens) + j;
  return sure ? argmax(row) : q.draw(task.sampler->noise(position, NoisePurpose::kToken));
}

}  // namespace

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
    } else {
      token = pick_to_compare(task, row, j, softcap);
    }
    task.out->tokens.push_back(token);
    window.push(token);
  }
}

}  // namespace octet
