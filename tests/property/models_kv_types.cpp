// What the type of the K/V cache costs in quality, on models whose layers share keys and values:
// one stored value is read by several layers, so its error counts more than once.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "octet/models/gemma4/forward.h"
#include "support/model_runs.h"
#include "support/random_models.h"

namespace octet::test {
namespace {

/// Root mean square of b - a over that of a's deviations from its mean.
double relative_error(const FloatRows& a, const FloatRows& b) {
  double error = 0.0;
  double size = 0.0;
  for (size_t r = 0; r < a.size(); ++r) {
    double mean = 0.0;
    for (const float x : a[r]) {
      mean += x / static_cast<double>(a[r].size());
    }
    for (size_t i = 0; i < a[r].size(); ++i) {
      error += std::pow(static_cast<double>(b[r][i]) - a[r][i], 2);
      size += std::pow(a[r][i] - mean, 2);
    }
  }
  return std::sqrt(error / size);
}

TEST(KvTypes, EightBitsStayNearFloatsWithSharedKeysAndValues) {
  const auto ops = test_ops();
  for (const int64_t shared_layers : {0, 2, 4}) {
    SCOPED_TRACE(testing::Message() << shared_layers << " shared layers");
    GemmaShape shape;
    shape.hidden = 64;
    shape.full_head_dim = 64;
    shape.sliding_head_dim = 32;
    shape.window = 20;
    shape.shared_layers = shared_layers;
    shape.sliding = {true, false, true, true, false, true, false};
    shape.kv_heads.assign(7, 2);
    shape.feed_forward.assign(7, 64);
    const auto model = load_target(make_gemma(shape, 21), *ops, {});
    const std::vector<TokenId> text = random_tokens(120, shape.vocabulary, 5);
    const TargetRun exact = run_target(*model, text, 16, {}, KvType::kF32);
    const TargetRun bf16 = run_target(*model, text, 16, {}, KvType::kBF16);
    const TargetRun q8 = run_target(*model, text, 16, {}, KvType::kQ8);
    EXPECT_EQ(first_not_finite(q8.logits), "");
    const double bf16_error = relative_error(exact.logits, bf16.logits);
    const double q8_error = relative_error(exact.logits, q8.logits);
    EXPECT_GT(bf16_error, 0.0);
    EXPECT_LT(bf16_error, 0.01);
    EXPECT_GT(q8_error, bf16_error) << "the cache was not of 8 bits";
    EXPECT_LT(q8_error, 0.03);
    RecordProperty("bf16_error", std::to_string(bf16_error));
    RecordProperty("q8_error", std::to_string(q8_error));
  }
}

}  // namespace
}  // namespace octet::test
