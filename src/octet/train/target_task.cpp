#include "octet/train/target_task.h"

#include <utility>
#include <vector>

#include "octet/base/check.h"

namespace octet::train {
namespace {

constexpr double kScalarRate = 0.1;  // layer scalars multiply the whole stream: they move slowly

bool is_table(const Parameter& parameter) {
  return parameter.name.ends_with("token_embd.weight");
}

}  // namespace

struct TargetTask::Foretold {
  HeadLoss result;
  BatchSums sums;
};

TargetTask::TargetTask(
    TargetNetwork network,
    Parameters parameters,
    std::span<const TrainingText> pieces,
    Precision precision,
    uint64_t seed
)
    : network_(std::move(network)),
      parameters_(std::move(parameters)),
      pieces_(pieces),
      precision_(precision),
      order_(std::ssize(pieces), seed) {}

ParameterRule TargetTask::rule(const Parameter& parameter) const {
  const bool scalar = parameter.name.ends_with("layer_output_scale.weight");
  return {parameter.is_matrix() && !is_table(parameter), scalar ? kScalarRate : 1.0};
}

/// All but the last token of each piece are read, all but the first foretold.
TargetTask::Foretold TargetTask::foretell(std::span<const TrainingText* const> pieces) {
  const auto length = std::ssize(pieces.front()->tokens);
  std::vector<int64_t> ids;
  for (const TrainingText* piece : pieces) {
    OCTET_CHECK(std::ssize(piece->tokens) == length);
    ids.insert(ids.end(), piece->tokens.begin(), piece->tokens.end());
  }
  const Tensor tokens = at::tensor(ids, at::kLong).reshape({std::ssize(pieces), length});
  const Tensor states = network_.states(parameters_, tokens.slice(1, 0, length - 1));
  HeadLossRows rows;
  rows.labels = tokens.slice(1, 1, length).reshape({-1});
  rows.weights = at::ones({rows.labels.size(0)}, states.options());
  const OutputHead head = {
      parameters_.at("token_embd.weight"), network_.config().softcap, precision_};
  Foretold foretold;
  foretold.result = head_loss(states, head, rows);
  foretold.sums.loss = foretold.result.loss.item<double>();
  foretold.sums.weight = static_cast<double>(rows.labels.size(0));
  foretold.sums.tokens = static_cast<double>(tokens.numel());
  foretold.sums.hits = {foretold.result.hits.sum().item<double>()};
  foretold.sums.judged = {foretold.sums.weight};
  return foretold;
}

BatchSums TargetTask::accumulate(const BatchShare& share) {
  std::vector<const TrainingText*> pieces;
  for (int64_t i = 0; i < share.count; ++i) {
    pieces.push_back(&pieces_[static_cast<size_t>(order_.text(share.first_sample + i))]);
  }
  const Foretold foretold = foretell(pieces);
  foretold.result.loss.backward();
  return foretold.sums;
}

BatchSums TargetTask::judge(std::span<const TrainingText> pieces) {
  const NoGradient no_gradient;
  BatchSums sums;
  for (const TrainingText& piece : pieces) {
    const TrainingText* one = &piece;
    sums.add(foretell({&one, 1}).sums);
  }
  return sums;
}

}  // namespace octet::train
