// The gemma4 forward pass against a naive float64 one, on random hyperparameters.
#include <gtest/gtest.h>

#include "support/model_runs.h"
#include "support/oracle_gemma4.h"
#include "support/random_models.h"

namespace octet::test {
namespace {

// float32 against float64 at these sizes; logits have a standard deviation of about 4. Taps may
// reach further: nothing normalises the residual.
constexpr double kTolerance = 2e-4;

double largest_difference(const FloatRows& found, const oracle::Matrix& expected) {
  double largest = 0.0;
  for (size_t r = 0; r < found.size(); ++r) {
    for (size_t c = 0; c < found[r].size(); ++c) {
      const double difference = std::abs(static_cast<double>(found[r][c]) - expected[r][c]);
      largest = std::isfinite(found[r][c]) ? std::max(largest, difference) : INFINITY;
    }
  }
  return largest;
}

void compare(const GemmaShape& shape, uint64_t seed) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  const auto checkpoint = make_gemma(shape, seed);
  const auto ops = test_ops();
  const auto model = load_target(checkpoint, *ops, {});
  const std::vector<TokenId> tokens =
      random_tokens(static_cast<int64_t>(1 + seed % 40), shape.vocabulary, seed);
  std::vector<int> taps;
  for (size_t l = 0; l < shape.sliding.size(); ++l) {
    taps.push_back(static_cast<int>(l));
  }
  const TargetRun run = run_target(*model, tokens, 1 + seed % 9, taps, KvType::kF32);
  const oracle::GemmaResult expected = oracle::Gemma(*checkpoint).run(tokens);
  ASSERT_EQ(run.logits.size(), expected.logits.size());
  EXPECT_LT(largest_difference(run.logits, expected.logits), kTolerance);
  for (size_t l = 0; l < taps.size(); ++l) {
    FloatRows tap;
    for (const std::vector<float>& row : run.features) {
      const auto begin = row.begin() + static_cast<int64_t>(l) * shape.hidden;
      tap.emplace_back(begin, begin + shape.hidden);
    }
    EXPECT_LT(largest_difference(tap, expected.layer_outputs[l]), kTolerance) << "layer " << l;
  }
}

TEST(TargetOracle, RandomShapes) {
  for (uint64_t seed = 1; seed <= 40 && !HasFailure(); ++seed) {
    compare(random_gemma_shape(seed), seed);
  }
}

TEST(TargetOracle, E4BLikePattern) {
  GemmaShape shape;
  shape.sliding = {true, true, false, true, true, false, true, true, false};
  shape.kv_heads.assign(9, 2);
  shape.feed_forward.assign(9, 40);
  shape.shared_layers = 3;
  compare(shape, 39);
}

TEST(TargetOracle, E2BLikeArraysAndSingleKvHead) {
  GemmaShape shape;
  shape.sliding = {true, true, false, true, true, false};
  shape.kv_heads.assign(6, 1);
  shape.feed_forward = {24, 24, 24, 48, 48, 48};
  shape.shared_layers = 3;
  shape.arrays = true;
  compare(shape, 37);
}

TEST(TargetOracle, NoPerLayerEmbeddingsNoSoftcapOwnHead) {
  GemmaShape shape;
  shape.ple_width = 0;
  shape.softcap = 0.0;
  shape.own_head = true;
  shape.layer_scalars = false;
  shape.rope_divisors = false;
  compare(shape, 35);
}

}  // namespace
}  // namespace octet::test
