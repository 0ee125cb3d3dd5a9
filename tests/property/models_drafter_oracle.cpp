// The DFlash drafter against a naive float64 forward pass with dense masks, on random
// hyperparameters, with contexts around and far beyond its window.
#include <gtest/gtest.h>

#include "octet/models/dflash/forward.h"
#include "support/model_runs.h"
#include "support/oracle_dflash.h"
#include "support/random_models.h"

namespace octet::test {
namespace {

constexpr double kTolerance = 2e-4;  // float32 against float64, logits of about 4

oracle::Matrix to_double(const FloatRows& rows) {
  oracle::Matrix out;
  for (const std::vector<float>& row : rows) {
    out.emplace_back(row.begin(), row.end());
  }
  return out;
}

FloatRows random_features(int64_t rows, int64_t cols, uint64_t seed) {
  FloatRows out;
  for (int64_t r = 0; r < rows; ++r) {
    out.push_back(random_values(cols, seed * 7919 + static_cast<uint64_t>(r), 3.0F));
  }
  return out;
}

void expect_near(const FloatRows& found, const oracle::Matrix& expected) {
  ASSERT_EQ(found.size(), expected.size());
  ASSERT_EQ(first_not_finite(found), "");
  double largest = 0.0;
  for (size_t r = 0; r < found.size(); ++r) {
    for (size_t c = 0; c < found[r].size(); ++c) {
      largest = std::max(largest, std::abs(static_cast<double>(found[r][c]) - expected[r][c]));
    }
  }
  EXPECT_LT(largest, kTolerance);
}

struct Pair {
  Pair(const GemmaShape& target_shape, const DFlashShape& drafter_shape, uint64_t seed)
      : target_file(make_gemma(target_shape, seed)),
        drafter_file(make_dflash(drafter_shape, seed + 1)),
        ops(test_ops()),
        target(load_target(target_file, *ops, {})) {
    DrafterOptions options;
    options.kv_type = KvType::kF32;
    drafter = load_drafter(drafter_file, *ops, *target, options);
  }

  std::shared_ptr<const Checkpoint> target_file;
  std::shared_ptr<const Checkpoint> drafter_file;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<TargetModel> target;
  std::unique_ptr<DraftModel> drafter;
};

void compare(const Pair& pair, const DFlashShape& shape, int64_t context, uint64_t seed) {
  SCOPED_TRACE(fmt::format("seed {} context {}", seed, context));
  const auto cols = static_cast<int64_t>(shape.taps.size()) * shape.hidden;
  const FloatRows features = random_features(context, cols, seed);
  const auto cache = pair.drafter->new_cache(context);
  inject(*pair.drafter, *cache, features);
  const TokenId anchor = random_tokens(1, shape.vocabulary, seed)[0];
  oracle::DFlashInput input;
  input.features = to_double(features);
  input.anchor = anchor;
  input.embedding_scale = shape.embedding_scale > 0.0 ? shape.embedding_scale : 1.0;
  const oracle::DFlash oracle(*pair.drafter_file, *pair.target_file);
  expect_near(draft(*pair.drafter, *cache, anchor), oracle.draft(input));
}

TEST(DrafterOracle, RandomShapes) {
  for (uint64_t seed = 1; seed <= 25 && !HasFailure(); ++seed) {
    const GemmaShape target = random_gemma_shape(seed);
    const DFlashShape shape = random_dflash_shape(target, seed);
    const Pair pair(target, shape, seed);
    RandomNumbers random(seed);
    compare(pair, shape, random.integer(0, 30), seed);
    compare(pair, shape, random.integer(60, 140), seed);
  }
}

/// Every length around the point where the window starts to cut, and after the ring has wrapped.
TEST(DrafterOracle, EdgesOfTheWindow) {
  const GemmaShape target;
  DFlashShape shape;
  shape.window = 20;
  const Pair pair(target, shape, 3);
  for (const int64_t context : {0, 1, 7, 11, 12, 13, 18, 19, 20, 21, 27, 28, 63, 64, 65, 200}) {
    compare(pair, shape, context, static_cast<uint64_t>(context));
  }
}

TEST(DrafterOracle, MissingFeaturesAreMasked) {
  const GemmaShape target;
  DFlashShape shape;
  shape.window = 24;
  shape.windowed = {true, false};
  const Pair pair(target, shape, 4);
  const auto cols = static_cast<int64_t>(shape.taps.size()) * shape.hidden;
  const FloatRows features = random_features(50, cols, 4);
  for (const int64_t first : {0, 10, 30, 45, 50}) {
    SCOPED_TRACE(fmt::format("features from {}", first));
    const auto cache = pair.drafter->new_cache(50);
    cache->restart(first);
    inject(*pair.drafter, *cache, FloatRows(features.begin() + first, features.end()));
    EXPECT_EQ(cache->valid_from(), first);
    oracle::DFlashInput input;
    input.features = to_double(features);
    input.valid_from = first;
    input.anchor = 9;
    const oracle::DFlash oracle(*pair.drafter_file, *pair.target_file);
    expect_near(draft(*pair.drafter, *cache, 9), oracle.draft(input));
  }
}

TEST(DrafterOracle, FusedFeatures) {
  const GemmaShape target;
  const DFlashShape shape;
  const Pair pair(target, shape, 5);
  const auto cols = static_cast<int64_t>(shape.taps.size()) * shape.hidden;
  const FloatRows features = random_features(9, cols, 5);
  std::vector<float> storage;
  std::vector<float> result(static_cast<size_t>(9 * shape.hidden));
  const Rows out{result.data(), 9, shape.hidden, shape.hidden};
  dynamic_cast<DFlashModel&>(*pair.drafter).fuse(as_rows(features, storage), out);
  const oracle::DFlash oracle(*pair.drafter_file, *pair.target_file);
  expect_near(copy_of(out), oracle.fuse(to_double(features)));
}

TEST(DrafterOracle, EmbeddingScaleSettings) {
  const GemmaShape target;
  DFlashShape shape;
  shape.embedding_scale = 5.5;
  const Pair pair(target, shape, 6);
  const auto scale_of = [&](EmbeddingScale::Kind kind, float value) {
    DrafterOptions options;
    options.embedding_scale = {kind, value};
    const auto model = load_drafter(pair.drafter_file, *pair.ops, *pair.target, options);
    return dynamic_cast<DFlashModel&>(*model).embedding_scale();
  };
  EXPECT_EQ(scale_of(EmbeddingScale::Kind::kFile, 0.0F), 5.5F);
  EXPECT_EQ(scale_of(EmbeddingScale::Kind::kOne, 0.0F), 1.0F);
  EXPECT_EQ(scale_of(EmbeddingScale::Kind::kSqrtHidden, 0.0F), std::sqrt(32.0F));
  EXPECT_EQ(scale_of(EmbeddingScale::Kind::kValue, 2.25F), 2.25F);
}

}  // namespace
}  // namespace octet::test
