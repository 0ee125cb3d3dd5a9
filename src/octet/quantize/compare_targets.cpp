#include "octet/quantize/compare_targets.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet {
namespace {

constexpr int64_t kRowsAtOnce = 32;  // bounds memory: a row has a vocabulary of logits

void require_alike(const TargetShape& first, const TargetShape& second) {
  if (first.vocabulary != second.vocabulary || first.hidden != second.hidden ||
      first.layers != second.layers) {
    throw Error(
        ErrorKind::kMismatch,
        fmt::format(
            "the models differ in shape: {} tokens, {} wide, {} layers against {}, {}, {}; compare "
            "forms of one model",
            first.vocabulary,
            first.hidden,
            first.layers,
            second.vocabulary,
            second.hidden,
            second.layers
        )
    );
  }
}

/// log of the sum of exp, and the index of the largest logit.
struct Normaliser {
  double log_sum = 0.0;
  int64_t best = 0;
};

Normaliser normalise(const float* logits, int64_t count) {
  Normaliser result;
  result.best = std::max_element(logits, logits + count) - logits;
  const double largest = logits[result.best];
  double sum = 0.0;
  for (int64_t i = 0; i < count; ++i) {
    sum += std::exp(logits[i] - largest);
  }
  result.log_sum = largest + std::log(sum);
  return result;
}

/// Adds up what rows say.
class Tally {
 public:
  explicit Tally(const TargetShape& shape)
      : shape_(shape),
        layer_differences_(static_cast<size_t>(shape.layers), 0.0),
        layer_squares_(static_cast<size_t>(shape.layers), 0.0) {}

  /// `next` is the token that follows, or kNone.
  static constexpr TokenId kNone = -1;

  void add_logits(const float* first, const float* second, TokenId next) {
    const int64_t count = shape_.vocabulary;
    const Normaliser a = normalise(first, count);
    const Normaliser b = normalise(second, count);
    double divergence = 0.0;
    double squares = 0.0;
    for (int64_t i = 0; i < count; ++i) {
      const double log_a = first[i] - a.log_sum;
      const double log_b = second[i] - b.log_sum;
      divergence += std::exp(log_a) * (log_a - log_b);
      const double difference = static_cast<double>(first[i]) - second[i];
      squares += difference * difference;
    }
    result_.sorted_kl.push_back(static_cast<float>(std::max(divergence, 0.0)));
    logit_squares_ += squares;
    agreements_ += a.best == b.best ? 1 : 0;
    if (next != kNone) {
      ++result_.predicted;
      first_loss_ += a.log_sum - first[next];
      second_loss_ += b.log_sum - second[next];
    }
  }

  /// Rows of features: one after the other the outputs of all layers.
  void add_features(const float* first, const float* second) {
    for (int64_t layer = 0; layer < shape_.layers; ++layer) {
      for (int64_t i = 0; i < shape_.hidden; ++i) {
        const double a = first[layer * shape_.hidden + i];
        const double difference = a - second[layer * shape_.hidden + i];
        layer_differences_[static_cast<size_t>(layer)] += difference * difference;
        layer_squares_[static_cast<size_t>(layer)] += a * a;
      }
    }
  }

  TargetComparison take() {
    result_.rows = std::ssize(result_.sorted_kl);
    const auto rows = static_cast<double>(result_.rows);
    std::sort(result_.sorted_kl.begin(), result_.sorted_kl.end());
    result_.mean_kl =
        std::accumulate(result_.sorted_kl.begin(), result_.sorted_kl.end(), 0.0) / rows;
    result_.top1_agreement = static_cast<double>(agreements_) / rows;
    result_.logit_rms = std::sqrt(logit_squares_ / (rows * static_cast<double>(shape_.vocabulary)));
    const auto predicted = static_cast<double>(result_.predicted);
    result_.perplexity_first = std::exp(first_loss_ / predicted);
    result_.perplexity_second = std::exp(second_loss_ / predicted);
    for (size_t layer = 0; layer < layer_squares_.size(); ++layer) {
      result_.layer_errors.push_back(
          std::sqrt(layer_differences_[layer] / std::max(layer_squares_[layer], 1e-300))
      );
    }
    return std::move(result_);
  }

 private:
  TargetShape shape_;
  TargetComparison result_;
  int64_t agreements_ = 0;
  double logit_squares_ = 0.0;
  double first_loss_ = 0.0;
  double second_loss_ = 0.0;
  std::vector<double> layer_differences_;
  std::vector<double> layer_squares_;
};

void compare_chunk(
    TargetModel& first, TargetModel& second, std::span<const TokenId> tokens, Tally& tally
) {
  std::vector<int> layers(static_cast<size_t>(first.shape().layers));
  std::iota(layers.begin(), layers.end(), 0);
  const auto first_cache = first.new_cache(std::ssize(tokens), KvType::kF32);
  const auto second_cache = second.new_cache(std::ssize(tokens), KvType::kF32);
  ForwardRows first_out;
  ForwardRows second_out;
  const int64_t at_once = std::min({kRowsAtOnce, first.max_rows(), second.max_rows()});
  for (int64_t begin = 0; begin < std::ssize(tokens); begin += at_once) {
    const int64_t count = std::min(at_once, std::ssize(tokens) - begin);
    SequenceRows rows;
    rows.tokens = tokens.subspan(static_cast<size_t>(begin), static_cast<size_t>(count));
    rows.logits_rows = count;
    rows.feature_rows = count;
    rows.cache = first_cache.get();
    first.forward({&rows, 1}, layers, first_out);
    rows.cache = second_cache.get();
    second.forward({&rows, 1}, layers, second_out);
    for (int64_t r = 0; r < count; ++r) {
      const bool last = begin + r + 1 == std::ssize(tokens);
      const TokenId next = last ? Tally::kNone : tokens[static_cast<size_t>(begin + r + 1)];
      tally.add_logits(first_out.logits.row(r), second_out.logits.row(r), next);
      tally.add_features(first_out.features.row(r), second_out.features.row(r));
    }
  }
}

}  // namespace

double TargetComparison::kl_quantile(double quantile) const {
  const auto last = static_cast<double>(std::ssize(sorted_kl) - 1);
  return sorted_kl.at(static_cast<size_t>(std::ceil(quantile * last)));
}

TargetComparison compare_targets(
    TargetModel& first,
    TargetModel& second,
    std::span<const std::vector<TokenId>> texts,
    TokenId bos,
    const ChunkOptions& options,
    const OnChunk& on_chunk
) {
  require_alike(first.shape(), second.shape());
  const std::vector<std::vector<TokenId>> chunks = cut_chunks(texts, bos, options, first.shape());
  Tally tally(first.shape());
  for (size_t c = 0; c < chunks.size(); ++c) {
    compare_chunk(first, second, chunks[c], tally);
    if (on_chunk) {
      on_chunk(static_cast<int64_t>(c) + 1, std::ssize(chunks));
    }
  }
  return tally.take();
}

}  // namespace octet
