// Laws of the target, bit for bit: a row's results do not depend on chunks, company, threads, what
// else is asked for, stale cache content, or positions that were taken back.
#include <cmath>

#include <gtest/gtest.h>

#include "octet/models/gemma4/forward.h"
#include "support/model_runs.h"
#include "support/random_models.h"

namespace octet::test {
namespace {

const std::vector<int> kTaps = {0, 2};

struct Case {
  DType dtype;
  KvType kv;
  int64_t window;  // with 16 spare rows: rings of 64 slots that are loose, full to the last row, or
                   // too small
};

/// A shape for laws: rings wrap soon, weights of the given type where rows allow it.
GemmaShape law_shape(const Case& law_case) {
  const DType dtype = law_case.dtype;
  GemmaShape shape;
  shape.dtype = dtype;
  shape.window = law_case.window;
  shape.sliding = {true, false, true, false, true};
  shape.kv_heads.assign(5, 2);
  shape.feed_forward.assign(5, 64);
  if (dtype_facts(dtype).block_values > 1) {
    shape.hidden = 256;
    shape.feed_forward.assign(5, 256);
    shape.full_head_dim = 64;
    shape.sliding_head_dim = 32;
    shape.ple_width = 32;
  }
  return shape;
}

class TargetLaws : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    checkpoint_ = make_gemma(law_shape(GetParam()), 7);
    ops_ = test_ops();
    model_ = load(*ops_, 16);
  }

  std::unique_ptr<TargetModel> load(Ops& ops, int64_t max_rows, bool skip = true) const {
    TargetOptions options;
    options.max_rows = max_rows;
    options.skip_unread_rows = skip;
    return load_target(checkpoint_, ops, options);
  }

  std::vector<TokenId> tokens(int64_t count, uint64_t seed) const {
    return random_tokens(count, model_->shape().vocabulary, seed);
  }

  std::shared_ptr<const Checkpoint> checkpoint_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<TargetModel> model_;
};

void expect_same(const TargetRun& found, const TargetRun& expected) {
  EXPECT_EQ(first_not_finite(found.logits), "");
  EXPECT_EQ(first_difference(found.logits, expected.logits), "");
  EXPECT_EQ(first_difference(found.features, expected.features), "");
}

TEST_P(TargetLaws, ChunkSizeChangesNothing) {
  const auto text = tokens(90, 1);
  const TargetRun one = run_target(*model_, text, 1, kTaps, GetParam().kv);
  for (int64_t chunk = 2; chunk <= 16; ++chunk) {
    SCOPED_TRACE(fmt::format("chunk {}", chunk));
    expect_same(run_target(*model_, text, chunk, kTaps, GetParam().kv), one);
  }
  const auto wide = load(*ops_, 90);
  expect_same(run_target(*wide, text, 90, kTaps, GetParam().kv), one);
}

/// Several texts in one batch, a random number of rows of each at a time.
class Company {
 public:
  Company(TargetModel& model, std::vector<std::vector<TokenId>> texts, KvType kv)
      : model_(model), texts_(std::move(texts)), runs_(texts_.size()) {
    for (const auto& text : texts_) {
      caches_.push_back(model_.new_cache(static_cast<int64_t>(text.size()), kv));
    }
  }

  const std::vector<TargetRun>& run(uint64_t seed) {
    RandomNumbers random(seed);
    int64_t left = 0;
    for (const auto& text : texts_) {
      left += static_cast<int64_t>(text.size());
    }
    while (left > 0) {
      left -= forward(random);
    }
    return runs_;
  }

 private:
  int64_t forward(RandomNumbers& random) {
    std::vector<SequenceRows> batch(texts_.size());
    for (size_t s = 0; s < texts_.size(); ++s) {
      const int64_t done = caches_[s]->length();
      const auto rest = std::span(texts_[s]).subspan(static_cast<size_t>(done));
      const auto rows = std::min(static_cast<int64_t>(rest.size()), random.integer(0, 9));
      batch[s] = {caches_[s].get(), rest.first(static_cast<size_t>(rows)), rows, rows};
    }
    ForwardRows out;
    model_.forward(batch, kTaps, out);
    int64_t row = 0;
    for (size_t s = 0; s < texts_.size(); ++s) {
      const int64_t rows = batch[s].logits_rows;
      append(runs_[s].logits, out.logits.slice(row, rows));
      append(runs_[s].features, out.features.slice(row, rows));
      row += rows;
    }
    return row;
  }

  TargetModel& model_;
  std::vector<std::vector<TokenId>> texts_;
  std::vector<TargetRun> runs_;
  std::vector<std::unique_ptr<SequenceCache>> caches_;
};

TEST_P(TargetLaws, OtherSequencesChangeNothing) {
  const std::vector<std::vector<TokenId>> texts = {tokens(70, 2), tokens(33, 3), tokens(91, 4)};
  const std::vector<TargetRun> runs = Company(*model_, texts, GetParam().kv).run(5);
  for (size_t s = 0; s < texts.size(); ++s) {
    SCOPED_TRACE(fmt::format("sequence {}", s));
    expect_same(runs[s], run_target(*model_, texts[s], 1, kTaps, GetParam().kv));
  }
}

TEST_P(TargetLaws, ThreadsChangeNothing) {
  const auto text = tokens(40, 6);
  const TargetRun one = run_target(*model_, text, 7, kTaps, GetParam().kv);
  for (int threads = 2; threads <= 4; ++threads) {
    SCOPED_TRACE(fmt::format("{} threads", threads));
    const auto ops = test_ops(threads);
    const auto model = load(*ops, 16);
    expect_same(run_target(*model, text, 7, kTaps, GetParam().kv), one);
  }
}

/// A neighbour that reads nothing but the order gets its logits before the cap; the others theirs
/// behind it.
TEST_P(TargetLaws, RawLogitsAreThoseBeforeTheCap) {
  const auto text = tokens(12, 7);
  const TargetRun capped = run_target(*model_, text, 12, kTaps, GetParam().kv);
  const auto raw_cache = model_->new_cache(12, GetParam().kv);
  const auto capped_cache = model_->new_cache(12, GetParam().kv);
  const SequenceRows batch[] = {
      {.cache = raw_cache.get(), .tokens = text, .logits_rows = 5, .raw_logits = true},
      {.cache = capped_cache.get(), .tokens = text, .logits_rows = 5}};
  ForwardRows out;
  model_->forward(batch, {}, out);
  const double cap = model_->final_softcap();
  ASSERT_GT(cap, 0.0);
  double greatest = 0.0;
  for (int64_t row = 0; row < 5; ++row) {
    const std::vector<float>& expected = capped.logits[static_cast<size_t>(row) + 7];
    for (int64_t token = 0; token < out.logits.cols; ++token) {
      const double raw = out.logits.row(row)[token];
      greatest = std::max(greatest, std::fabs(raw));
      ASSERT_NEAR(cap * std::tanh(raw / cap), expected[static_cast<size_t>(token)], 1e-5 * cap);
      ASSERT_EQ(out.logits.row(row + 5)[token], expected[static_cast<size_t>(token)]);
    }
  }
  EXPECT_GT(greatest, 3.0) << "the cap must bend something, else nothing is tested";
}

/// Asks for few rows, as prefill does, and compares with a model that computes everything.
TEST_P(TargetLaws, SkippingUnreadRowsChangesNothing) {
  const auto full = load(*ops_, 16, false);
  const auto text = tokens(120, 8);
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RandomNumbers random(seed);
    const auto skipping_cache = model_->new_cache(120, GetParam().kv);
    const auto full_cache = full->new_cache(120, GetParam().kv);
    while (skipping_cache->length() < 120) {
      const int64_t done = skipping_cache->length();
      const int64_t rows = std::min<int64_t>(120 - done, random.integer(1, 16));
      const int64_t logits_rows = std::min(rows, random.integer(0, 3));
      const int64_t feature_rows = std::min(rows, random.integer(0, 9));
      const auto part =
          std::span(text).subspan(static_cast<size_t>(done), static_cast<size_t>(rows));
      const std::vector<int> taps = {static_cast<int>(random.integer(0, 4)), 1};
      const SequenceRows a{skipping_cache.get(), part, logits_rows, feature_rows};
      const SequenceRows b{full_cache.get(), part, logits_rows, feature_rows};
      ForwardRows found;
      ForwardRows expected;
      model_->forward({&a, 1}, taps, found);
      full->forward({&b, 1}, taps, expected);
      ASSERT_EQ(found.logits.rows, logits_rows);
      ASSERT_EQ(found.features.rows, feature_rows);
      ASSERT_EQ(first_not_finite(copy_of(found.logits)), "");
      ASSERT_EQ(first_difference(copy_of(found.logits), copy_of(expected.logits)), "");
      ASSERT_EQ(first_difference(copy_of(found.features), copy_of(expected.features)), "");
    }
  }
}

/// Wrong continuations are run and taken back at every place of the ring, as rejected drafts are;
/// what they left and no row may see is NaN from then on.
TEST_P(TargetLaws, PositionsTakenBackLeaveNoTrace) {
  const auto text = tokens(170, 9);
  const TargetRun expected = run_target(*model_, text, 16, kTaps, GetParam().kv);
  RandomNumbers random(10);
  const auto cache = model_->new_cache(400, GetParam().kv);
  auto& kv = dynamic_cast<Gemma4Cache&>(*cache).kv();
  TargetRun run;
  while (cache->length() < 170) {
    const int64_t done = cache->length();
    const int64_t wrong = random.integer(0, 16);
    if (wrong > 0) {
      TargetRun ignored;
      forward_all(*model_, *cache, tokens(wrong, random.bits()), kTaps, ignored);
    }
    const int64_t keep = std::max<int64_t>(0, done - random.integer(0, 16 - wrong));
    ASSERT_TRUE(cache->can_truncate(keep));
    cache->truncate(keep);
    kv.poison();
    run.logits.resize(static_cast<size_t>(keep));
    run.features.resize(static_cast<size_t>(keep));
    const int64_t rows = std::min<int64_t>(170 - keep, 12 + random.integer(0, 4));
    const auto part = std::span(text).subspan(static_cast<size_t>(keep), static_cast<size_t>(rows));
    forward_all(*model_, *cache, part, kTaps, run);
  }
  expect_same(run, expected);
}

/// Whatever a row may not see is NaN in the cache; at every position, so at every edge of window
/// and ring.
TEST_P(TargetLaws, StaleEntriesAreNeverRead) {
  const auto text = tokens(150, 11);
  const TargetRun expected = run_target(*model_, text, 16, kTaps, GetParam().kv);
  for (const int64_t chunk : {1, 8}) {
    SCOPED_TRACE(fmt::format("chunk {}", chunk));
    const auto cache = model_->new_cache(150, GetParam().kv);
    auto& kv = dynamic_cast<Gemma4Cache&>(*cache).kv();
    TargetRun run;
    while (cache->length() < 150) {
      kv.poison();
      const int64_t done = cache->length();
      const int64_t rows = std::min<int64_t>(chunk, 150 - done);
      const auto part =
          std::span(text).subspan(static_cast<size_t>(done), static_cast<size_t>(rows));
      forward_all(*model_, *cache, part, kTaps, run);
    }
    expect_same(run, expected);
  }
}

/// Models of every shape: chunks, threads and positions taken back at random.
TEST(TargetLawsOfRandomModels, ChunksThreadsAndRollbackChangeNothing) {
  for (uint64_t seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE(seed);
    RandomNumbers random(seed);
    GemmaShape shape = random_gemma_shape(seed);
    shape.dtype = seed % 2 == 0 ? DType::kF32 : DType::kBF16;
    const KvType kv = seed % 3 == 0 ? KvType::kF32 : KvType::kBF16;
    const auto checkpoint = make_gemma(shape, seed);
    const auto ops = test_ops();
    const auto others = test_ops(static_cast<int>(random.integer(2, 4)));
    TargetOptions options;
    options.max_rows = 16;
    const auto model = load_target(checkpoint, *ops, options);
    const auto threaded = load_target(checkpoint, *others, options);
    const int64_t length = random.integer(20, 80);
    const auto text = random_tokens(length, shape.vocabulary, seed);
    const std::vector<int> taps = {0, static_cast<int>(shape.sliding.size()) - 1};
    const TargetRun expected = run_target(*model, text, 1, taps, kv);
    expect_same(run_target(*model, text, random.integer(2, 16), taps, kv), expected);
    const auto cache = threaded->new_cache(length + 16, kv);
    auto& kv_cache = dynamic_cast<Gemma4Cache&>(*cache).kv();
    TargetRun run;
    while (cache->length() < length) {
      const int64_t done = cache->length();
      TargetRun ignored;
      const auto wrong = random_tokens(random.integer(1, 8), shape.vocabulary, random.bits());
      forward_all(*threaded, *cache, wrong, taps, ignored);
      cache->truncate(done);
      kv_cache.poison();
      const int64_t rows = std::min<int64_t>(length - done, random.integer(1, 8));
      const auto part =
          std::span(text).subspan(static_cast<size_t>(done), static_cast<size_t>(rows));
      forward_all(*threaded, *cache, part, taps, run);
    }
    expect_same(run, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Types,
    TargetLaws,
    testing::Values(
        Case{DType::kF32, KvType::kF32, 10},
        Case{DType::kBF16, KvType::kBF16, 48},
        Case{DType::kQ8_0, KvType::kBF16, 60},
        Case{DType::kQ4K, KvType::kBF16, 49},
        Case{DType::kQ6K, KvType::kF32, 1},
        Case{DType::kF32, KvType::kQ8, 48},
        Case{DType::kQ4_0, KvType::kQ8, 10},
        Case{DType::kQ4_1, KvType::kBF16, 48},
        Case{DType::kQ5K, KvType::kBF16, 10},
        Case{DType::kIQ4NL, KvType::kBF16, 60},
        Case{DType::kMXFP4, KvType::kBF16, 48},
        Case{DType::kNVFP4, KvType::kBF16, 10}
    ),
    [](const testing::TestParamInfo<Case>& param) {
      return fmt::format(
          "{}_{}", dtype_facts(param.param.dtype).name, kv_type_name(param.param.kv)
      );
    }
);

}  // namespace
}  // namespace octet::test
