// Collecting importance and comparing targets, on random models: against naive sums.

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/models/load_model.h"
#include "octet/quantize/collect_importance.h"
#include "octet/quantize/compare_targets.h"
#include "support/random_models.h"

namespace octet::test {
namespace {

constexpr TokenId kBos = 2;

std::unique_ptr<Ops> portable_ops() {
  CpuOptions options;
  options.threads = 1;
  options.isa = "portable";
  return make_cpu_ops(options);
}

std::vector<std::vector<TokenId>> random_texts(int64_t vocabulary, uint64_t seed) {
  return {random_tokens(41, vocabulary, seed), random_tokens(5, vocabulary, seed + 1)};
}

TEST(CollectImportance, AddsUpTheSquaresOfWhatAMatrixIsMultipliedWith) {
  const auto model = make_gemma(GemmaShape{}, 1);
  ImportanceOps ops(portable_ops());
  const auto weight = ops.prepare(*model, model->at("blk.0.attn_q.weight"));
  const int64_t rows = 7;
  const std::vector<float> x = random_values(rows * weight->cols, 3, 2.0F);
  std::vector<float> out(static_cast<size_t>(rows * weight->rows));
  const Product product{weight.get(), {out.data(), rows, weight->rows, weight->rows}};
  ops.matmul({x.data(), rows, weight->cols, weight->cols}, {&product, 1});
  const auto entries = ops.entries();
  const ImportanceEntry& entry = entries.at("blk.0.attn_q.weight");
  EXPECT_EQ(entry.count, rows);
  for (int64_t c = 0; c < weight->cols; ++c) {
    double sum = 0.0;
    for (int64_t r = 0; r < rows; ++r) {
      sum += std::pow(static_cast<double>(x[static_cast<size_t>(r * weight->cols + c)]), 2);
    }
    EXPECT_NEAR(entry.sum_squares[static_cast<size_t>(c)], sum, 1e-6 * sum);
  }
}

TEST(CollectImportance, EveryTokenCountsOnceInEveryMatrixThatIsUsed) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const GemmaShape shape = random_gemma_shape(seed);
    const std::shared_ptr<const Checkpoint> model = make_gemma(shape, seed);
    ImportanceOps ops(portable_ops());
    const auto target = load_target(model, ops, {});
    const auto texts = random_texts(shape.vocabulary, seed);
    const ImportanceMatrix matrix = collect_importance(*target, ops, texts, kBos, {16, 0}, {});
    EXPECT_EQ(matrix.chunk_count, 4);        // 15 + 15 + 11, and 5
    constexpr int64_t kTokens = 41 + 5 + 4;  // and a begin token a chunk
    const auto layers = static_cast<int64_t>(shape.sliding.size());
    for (int64_t layer = 0; layer < layers; ++layer) {
      const auto name = [&](const char* part) {
        return fmt::format("blk.{}.{}.weight", layer, part);
      };
      const bool owns = layer < layers - shape.shared_layers;
      EXPECT_EQ(matrix.entries.contains(name("attn_k")), owns);
      EXPECT_EQ(matrix.entries.contains(name("attn_v")), owns);
      for (const char* part : {"attn_q", "attn_output", "ffn_gate", "ffn_up", "ffn_down"}) {
        ASSERT_TRUE(matrix.entries.contains(name(part))) << name(part);
        EXPECT_EQ(matrix.entries.at(name(part)).count, kTokens) << name(part);
      }
      EXPECT_EQ(
          matrix.entries.at(name("ffn_gate")).sum_squares,
          matrix.entries.at(name("ffn_up")).sum_squares
      );
    }
    EXPECT_FALSE(matrix.entries.contains("token_embd.weight"));
    EXPECT_FALSE(matrix.entries.contains("per_layer_model_proj.weight"));
  }
}

/// Log-probabilities of one row, in long double.
std::vector<long double> log_probabilities(const float* logits, int64_t count) {
  long double sum = 0.0L;
  for (int64_t i = 0; i < count; ++i) {
    sum += std::exp(static_cast<long double>(logits[i]));
  }
  std::vector<long double> result;
  for (int64_t i = 0; i < count; ++i) {
    result.push_back(logits[i] - std::log(sum));
  }
  return result;
}

TEST(CompareTargets, AModelEqualsItself) {
  const GemmaShape shape;
  const std::shared_ptr<const Checkpoint> model = make_gemma(shape, 5);
  const auto ops = portable_ops();
  const auto first = load_target(model, *ops, {});
  const auto second = load_target(model, *ops, {});
  const TargetComparison found =
      compare_targets(*first, *second, random_texts(shape.vocabulary, 1), kBos, {24, 0}, {});
  EXPECT_EQ(found.rows, 41 + 5 + 3);
  EXPECT_EQ(found.predicted, 41 + 5);
  EXPECT_EQ(found.mean_kl, 0.0);
  EXPECT_EQ(found.top1_agreement, 1.0);
  EXPECT_EQ(found.logit_rms, 0.0);
  EXPECT_EQ(found.perplexity_first, found.perplexity_second);
  EXPECT_EQ(found.layer_errors, std::vector<double>(shape.sliding.size(), 0.0));
}

TEST(CompareTargets, FiguresAreTheNaiveOnes) {
  const GemmaShape shape;
  const std::shared_ptr<const Checkpoint> one = make_gemma(shape, 5);
  const std::shared_ptr<const Checkpoint> other = make_gemma(shape, 6);
  const auto ops = portable_ops();
  const auto first = load_target(one, *ops, {});
  const auto second = load_target(other, *ops, {});
  const std::vector<TokenId> text = random_tokens(50, shape.vocabulary, 9);
  const std::vector<std::vector<TokenId>> texts = {text};
  const TargetComparison found = compare_targets(*first, *second, texts, kBos, {64, 0}, {});

  std::vector<TokenId> tokens = {kBos};
  tokens.insert(tokens.end(), text.begin(), text.end());
  ForwardRows outs[2];
  std::vector<int> layers(shape.sliding.size());
  std::iota(layers.begin(), layers.end(), 0);
  for (int m = 0; m < 2; ++m) {
    TargetModel& model = m == 0 ? *first : *second;
    const auto cache = model.new_cache(std::ssize(tokens), KvType::kF32);
    SequenceRows rows;
    rows.cache = cache.get();
    rows.tokens = tokens;
    rows.logits_rows = std::ssize(tokens);
    rows.feature_rows = std::ssize(tokens);
    model.forward({&rows, 1}, layers, outs[m]);
  }
  long double kl = 0.0L;
  long double loss = 0.0L;
  long double first_loss = 0.0L;
  long double logit_squares = 0.0L;
  std::vector<long double> differences(layers.size());
  std::vector<long double> squares(layers.size());
  int64_t same = 0;
  for (int64_t r = 0; r < std::ssize(tokens); ++r) {
    const auto p = log_probabilities(outs[0].logits.row(r), shape.vocabulary);
    const auto q = log_probabilities(outs[1].logits.row(r), shape.vocabulary);
    for (size_t i = 0; i < p.size(); ++i) {
      kl += std::exp(p[i]) * (p[i] - q[i]);
    }
    same += std::max_element(p.begin(), p.end()) - p.begin() ==
                    std::max_element(q.begin(), q.end()) - q.begin()
                ? 1
                : 0;
    if (r + 1 < std::ssize(tokens)) {
      loss -= q[static_cast<size_t>(tokens[static_cast<size_t>(r + 1)])];
      first_loss -= p[static_cast<size_t>(tokens[static_cast<size_t>(r + 1)])];
    }
    for (int64_t i = 0; i < shape.vocabulary; ++i) {
      const long double a = outs[0].logits.row(r)[i];
      logit_squares += (a - outs[1].logits.row(r)[i]) * (a - outs[1].logits.row(r)[i]);
    }
    for (size_t layer = 0; layer < layers.size(); ++layer) {
      for (int64_t i = 0; i < shape.hidden; ++i) {
        const int64_t at = static_cast<int64_t>(layer) * shape.hidden + i;
        const long double a = outs[0].features.row(r)[at];
        const long double difference = a - outs[1].features.row(r)[at];
        differences[layer] += difference * difference;
        squares[layer] += a * a;
      }
    }
  }
  const auto rows = static_cast<double>(tokens.size());
  EXPECT_NEAR(found.mean_kl, static_cast<double>(kl) / rows, 1e-6);
  EXPECT_GT(found.mean_kl, 0.1);
  EXPECT_NEAR(found.perplexity_second, std::exp(static_cast<double>(loss) / (rows - 1)), 1e-4);
  EXPECT_NEAR(found.perplexity_first, std::exp(static_cast<double>(first_loss) / (rows - 1)), 1e-4);
  EXPECT_GT(std::fabs(found.perplexity_first - found.perplexity_second), 0.01);
  const double values = rows * static_cast<double>(shape.vocabulary);
  EXPECT_NEAR(found.logit_rms, std::sqrt(static_cast<double>(logit_squares) / values), 1e-6);
  ASSERT_EQ(found.layer_errors.size(), layers.size());
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const auto expected = std::sqrt(static_cast<double>(differences[layer] / squares[layer]));
    EXPECT_NEAR(found.layer_errors[layer], expected, 1e-6) << "layer " << layer;
    EXPECT_GT(expected, 0.01);
  }
  EXPECT_DOUBLE_EQ(found.top1_agreement, static_cast<double>(same) / rows);
  EXPECT_EQ(found.kl_quantile(1.0), found.sorted_kl.back());
  EXPECT_THROW(
      compare_targets(*first, *second, std::vector<std::vector<TokenId>>(), kBos, {64, 0}, {}),
      Error
  );
}

}  // namespace
}  // namespace octet::test
