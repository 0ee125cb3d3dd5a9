#include "octet/train/drafter_task.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "octet/base/philox.h"

namespace octet::train {
namespace {

constexpr uint32_t kAnchorPurpose = 0xA2C4;

Tensor long_tensor(const std::vector<int64_t>& values) {
  return at::tensor(values, at::kLong);
}

}  // namespace

std::vector<int64_t> choose_anchors(
    const TrainingText& text, int64_t count, uint64_t seed, int64_t sample
) {
  struct Place {
    uint64_t number;
    int64_t position;
  };
  std::vector<Place> places;
  for (int64_t p = text.first_learned; p + 1 < std::ssize(text.tokens); ++p) {
    if (!text.learns(p) || !text.learns(p + 1)) {
      continue;
    }
    places.push_back({philox_words(seed, sample, kAnchorPurpose, static_cast<uint32_t>(p))[0], p});
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return a.number < b.number;
  });
  places.resize(std::min(places.size(), static_cast<size_t>(count)));
  std::vector<int64_t> anchors;
  for (const Place& place : places) {
    anchors.push_back(place.position);
  }
  std::sort(anchors.begin(), anchors.end());
  return anchors;
}

/// A share in the making, sample after sample.
struct DrafterTask::Batch {
  int64_t rows = 0;    // of features so far
  int64_t tokens = 0;  // of the texts
  std::vector<Tensor> features;
  std::vector<int64_t> positions;         // [rows]
  std::vector<int64_t> anchor_tokens;     // [blocks]
  std::vector<int64_t> anchor_rows;       // [blocks]
  std::vector<int64_t> anchor_positions;  // [blocks]
  std::vector<int64_t> labels;            // [blocks * (block - 1)]
  std::vector<float> weights;             // likewise; 0 behind the end of the text or of the reply
  Tensor teacher;  // rows of logits in the order of the labels; undefined: the labels teach

  DraftBlocks blocks() const {
    return {
        at::cat(features),
        long_tensor(positions),
        long_tensor(anchor_tokens),
        long_tensor(anchor_rows),
        long_tensor(anchor_positions)};
  }
};

DrafterTask::DrafterTask(
    DrafterNetwork network,
    Parameters parameters,
    OutputHead head,
    TargetSource& source,
    DrafterTaskSettings settings
)
    : network_(std::move(network)),
      parameters_(std::move(parameters)),
      head_(std::move(head)),
      source_(source),
      settings_(settings),
      order_(std::ssize(source.texts()), settings.seed) {}

ParameterRule DrafterTask::rule(const Parameter& parameter) const {
  return {parameter.is_matrix(), 1.0};
}

void DrafterTask::add_text(Batch& batch, int64_t text, std::span<const int64_t> anchors) {
  const TrainingText& learned = source_.texts()[static_cast<size_t>(text)];
  const std::vector<TokenId>& tokens = learned.tokens;
  const int64_t count = std::ssize(tokens);
  const int64_t drafts = network_.config().block - 1;
  const int64_t first_label = std::ssize(batch.labels);
  std::vector<int64_t> taught_at;  // of each label: the logits at position p - 1 foresee position p
  for (const int64_t anchor : anchors) {
    batch.anchor_tokens.push_back(tokens[static_cast<size_t>(anchor)]);
    batch.anchor_rows.push_back(batch.rows + anchor);
    batch.anchor_positions.push_back(anchor);
    bool inside = true;  // of the text, and of what is learned
    for (int64_t k = 1; k <= drafts; ++k) {
      inside = inside && anchor + k < count && learned.learns(anchor + k);
      batch.labels.push_back(inside ? tokens[static_cast<size_t>(anchor + k)] : 0);
      batch.weights.push_back(
          inside
              ? static_cast<float>(std::exp(-static_cast<double>(k - 1) / settings_.weight_decay))
              : 0.0F
      );
      taught_at.push_back(anchor + k - 1);
    }
  }
  Tensor teacher;
  if (batch.teacher.defined()) {
    teacher = batch.teacher.narrow(0, first_label, std::ssize(taught_at));
  } else {
    taught_at.clear();
  }
  batch.features.push_back(source_.read(text, taught_at, teacher));
  for (int64_t p = 0; p + 1 < count; ++p) {
    batch.positions.push_back(p);
  }
  batch.rows += count - 1;
  batch.tokens += count;
}

BatchSums DrafterTask::accumulate(const BatchShare& share) {
  const int64_t drafts = network_.config().block - 1;
  std::vector<int64_t> texts;
  std::vector<std::vector<int64_t>> anchors;
  int64_t blocks = 0;
  for (int64_t sample = share.first_sample; sample < share.first_sample + share.count; ++sample) {
    texts.push_back(order_.text(sample));
    anchors.push_back(choose_anchors(
        source_.texts()[static_cast<size_t>(texts.back())],
        settings_.anchors,
        settings_.seed,
        sample
    ));
    blocks += std::ssize(anchors.back());
  }
  Batch batch;
  if (settings_.teacher == Teacher::kDistribution) {
    batch.teacher = at::zeros({blocks * drafts, head_.weight.size(0)}, at::kFloat);
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    add_text(batch, texts[i], anchors[i]);
  }
  BatchSums sums;
  sums.tokens = static_cast<double>(batch.tokens);
  sums.hits.assign(static_cast<size_t>(drafts), 0.0);
  sums.judged.assign(static_cast<size_t>(drafts), 0.0);
  if (batch.anchor_tokens.empty()) {
    return sums;
  }
  HeadLossRows rows;
  rows.labels = long_tensor(batch.labels);
  rows.weights = at::tensor(batch.weights);
  rows.teacher = batch.teacher;
  const Tensor states = network_.states(parameters_, batch.blocks());
  const HeadLoss result = head_loss(states, head_, rows);
  result.loss.backward();

  sums.loss = result.loss.item<double>();
  const auto* hits = result.hits.data_ptr<bool>();
  for (size_t i = 0; i < batch.weights.size(); ++i) {
    const size_t position = i % static_cast<size_t>(drafts);
    sums.weight += static_cast<double>(batch.weights[i]);
    if (batch.weights[i] > 0.0F) {
      sums.judged[position] += 1.0;
      sums.hits[position] += hits[i] ? 1.0 : 0.0;
    }
  }
  return sums;
}

}  // namespace octet::train
