#include "octet/train/drafter_task.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "octet/base/check.h"
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
  std::vector<float> weights;             // likewise; 0 behind the text's end
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
    TargetModel& target,
    std::span<const TrainingText> texts,
    DrafterTaskSettings settings
)
    : network_(std::move(network)),
      parameters_(std::move(parameters)),
      head_(std::move(head)),
      target_(target),
      texts_(texts),
      settings_(settings),
      order_(std::ssize(texts), settings.seed) {}

ParameterRule DrafterTask::rule(const Parameter& parameter) const {
  return {parameter.is_matrix(), 1.0};
}

void DrafterTask::add_text(
    Batch& batch, const TrainingText& text, std::span<const int64_t> anchors
) {
  // Where the text's rows of the teacher begin.
  const int64_t first_row = std::ssize(batch.labels);
  const int64_t count = std::ssize(text.tokens);
  const int64_t drafts = network_.config().block - 1;
  for (const int64_t anchor : anchors) {
    batch.anchor_tokens.push_back(text.tokens[static_cast<size_t>(anchor)]);
    batch.anchor_rows.push_back(batch.rows + anchor);
    batch.anchor_positions.push_back(anchor);
    for (int64_t k = 1; k <= drafts; ++k) {
      const bool inside = anchor + k < count;
      batch.labels.push_back(inside ? text.tokens[static_cast<size_t>(anchor + k)] : 0);
      batch.weights.push_back(
          inside
              ? static_cast<float>(std::exp(-static_cast<double>(k - 1) / settings_.weight_decay))
              : 0.0F
      );
    }
  }
  read_target(batch, text, anchors, first_row);
  batch.tokens += count;
}

/// Runs the engine's target over the text, a chunk at a time, and keeps the features of every row
/// and the logits that the blocks are taught by: those at position p - 1 foresee position p.
void DrafterTask::read_target(
    Batch& batch, const TrainingText& text, std::span<const int64_t> anchors, int64_t first_row
) {
  const int64_t count = std::ssize(text.tokens);
  const int64_t drafts = network_.config().block - 1;
  const std::vector<int>& taps = network_.config().taps;
  const int64_t width = std::ssize(taps) * network_.config().hidden;
  const int64_t vocabulary = target_.shape().vocabulary;
  const bool wants_logits = batch.teacher.defined();

  Tensor features = at::empty({count, width}, at::kFloat);
  const auto cache = target_.new_cache(count, KvType::kBF16);
  ForwardRows out;
  for (int64_t begin = 0; begin < count; begin += target_.max_rows()) {
    const int64_t rows = std::min(target_.max_rows(), count - begin);
    const auto part =
        std::span(text.tokens).subspan(static_cast<size_t>(begin), static_cast<size_t>(rows));
    const SequenceRows sequence{cache.get(), part, wants_logits ? rows : 0, rows};
    target_.forward({&sequence, 1}, taps, out);
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(
          features.data_ptr<float>() + (begin + r) * width,
          out.features.row(r),
          static_cast<size_t>(width) * sizeof(float)
      );
    }
    for (size_t a = 0; wants_logits && a < anchors.size(); ++a) {
      for (int64_t k = 1; k <= drafts; ++k) {
        const int64_t row = anchors[a] + k - 1 - begin;
        if (row >= 0 && row < rows) {
          std::memcpy(
              batch.teacher.data_ptr<float>() +
                  (first_row + static_cast<int64_t>(a) * drafts + k - 1) * vocabulary,
              out.logits.row(row),
              static_cast<size_t>(vocabulary) * sizeof(float)
          );
        }
      }
    }
  }
  for (int64_t p = 0; p < count; ++p) {
    batch.positions.push_back(p);
  }
  batch.rows += count;
  batch.features.push_back(std::move(features));
}

BatchSums DrafterTask::accumulate(const BatchShare& share) {
  const int64_t drafts = network_.config().block - 1;
  std::vector<const TrainingText*> texts;
  std::vector<std::vector<int64_t>> anchors;
  int64_t blocks = 0;
  for (int64_t sample = share.first_sample; sample < share.first_sample + share.count; ++sample) {
    texts.push_back(&texts_[static_cast<size_t>(order_.text(sample))]);
    anchors.push_back(choose_anchors(*texts.back(), settings_.anchors, settings_.seed, sample));
    blocks += std::ssize(anchors.back());
  }
  Batch batch;
  if (settings_.teacher == Teacher::kDistribution) {
    batch.teacher = at::zeros({blocks * drafts, target_.shape().vocabulary}, at::kFloat);
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    add_text(batch, *texts[i], anchors[i]);
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
