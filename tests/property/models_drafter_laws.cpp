// Laws of the drafter, bit for bit: drafts do not depend on how features arrived, on company,
// threads, earlier blocks or stale entries, and depend on a context row exactly where the window
// lets it through.
#include <gtest/gtest.h>

#include "octet/models/dflash/forward.h"
#include "support/model_runs.h"
#include "support/random_models.h"

namespace octet::test {
namespace {

struct Case {
  DType dtype;
  int64_t window;  // with a block of 8: rings of 64 slots that are loose, full to the last row, or
                   // too small
};

class DrafterLaws : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    GemmaShape target;
    target.dtype = GetParam().dtype;
    shape_.dtype = GetParam().dtype;
    shape_.window = GetParam().window;
    if (dtype_facts(shape_.dtype).block_values > 1) {
      target.hidden = 256;
      target.feed_forward.assign(4, 256);
      shape_.hidden = 256;
      shape_.feed_forward = 256;
      shape_.head_dim = 64;
    }
    target_file_ = make_gemma(target, 1);
    load(shape_, 1);
  }

  void load(const DFlashShape& shape, int threads) {
    drafter_.reset();
    target_.reset();
    ops_ = test_ops(threads);
    target_ = load_target(target_file_, *ops_, {});
    drafter_ = load_drafter(make_dflash(shape, 2), *ops_, *target_, {});
  }

  FloatRows features(int64_t rows, uint64_t seed) const {
    FloatRows out;
    const auto cols = static_cast<int64_t>(shape_.taps.size()) * shape_.hidden;
    for (int64_t r = 0; r < rows; ++r) {
      out.push_back(random_values(cols, seed * 7919 + static_cast<uint64_t>(r), 3.0F));
    }
    return out;
  }

  std::unique_ptr<DraftCache> filled(const FloatRows& rows, int64_t positions = 400) const {
    auto cache = drafter_->new_cache(positions);
    inject(*drafter_, *cache, rows);
    return cache;
  }

  DFlashShape shape_;
  std::shared_ptr<const Checkpoint> target_file_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<TargetModel> target_;
  std::unique_ptr<DraftModel> drafter_;
};

FloatRows part(const FloatRows& rows, size_t begin, size_t end) {
  return {rows.begin() + static_cast<int64_t>(begin), rows.begin() + static_cast<int64_t>(end)};
}

TEST_P(DrafterLaws, ChunksOfFeaturesChangeNothing) {
  const FloatRows rows = features(170, 1);
  const auto whole = filled(rows);
  const FloatRows expected = draft(*drafter_, *whole, 3);
  ASSERT_EQ(first_not_finite(expected), "");
  for (const size_t chunk : {1, 7, 64, 100}) {
    SCOPED_TRACE(fmt::format("chunk {}", chunk));
    const auto cache = drafter_->new_cache(400);
    for (size_t begin = 0; begin < rows.size(); begin += chunk) {
      inject(*drafter_, *cache, part(rows, begin, std::min(rows.size(), begin + chunk)));
    }
    EXPECT_EQ(first_difference(draft(*drafter_, *cache, 3), expected), "");
  }
}

TEST_P(DrafterLaws, ThreadsChangeNothing) {
  const FloatRows rows = features(90, 2);
  const FloatRows expected = draft(*drafter_, *filled(rows), 3);
  for (int threads = 2; threads <= 4; ++threads) {
    load(shape_, threads);
    EXPECT_EQ(first_difference(draft(*drafter_, *filled(rows), 3), expected), "");
  }
}

/// Only the last window of a long text is injected: the same drafts as after all of it.
TEST_P(DrafterLaws, RowsBeforeTheWindowChangeNothing) {
  const FloatRows rows = features(200, 3);
  const FloatRows expected = draft(*drafter_, *filled(rows), 3);
  const auto window = static_cast<size_t>(shape_.window);
  const auto cache = drafter_->new_cache(400);
  cache->restart(static_cast<int64_t>(rows.size() - window + 1));
  inject(*drafter_, *cache, part(rows, rows.size() - window + 1, rows.size()));
  EXPECT_EQ(first_difference(draft(*drafter_, *cache, 3), expected), "");
}

/// The cycle's use: draft, keep some rows, inject those, draft again. Earlier blocks must leave no
/// trace, and nothing outside the visible context may be read.
TEST_P(DrafterLaws, BlocksAndStaleEntriesLeaveNoTrace) {
  const FloatRows rows = features(180, 4);
  RandomNumbers random(4);
  const auto cache = drafter_->new_cache(400);
  auto& kv = dynamic_cast<DFlashCache&>(*cache).kv();
  while (cache->length() < 180) {
    kv.poison();
    const auto done = static_cast<size_t>(cache->length());
    const FloatRows found = draft(*drafter_, *cache, 5);
    const auto fresh = filled(part(rows, 0, done));
    ASSERT_EQ(first_not_finite(found), "");
    ASSERT_EQ(first_difference(found, draft(*drafter_, *fresh, 5)), "") << "at " << done;
    const auto kept = static_cast<size_t>(random.integer(1, 8));
    inject(*drafter_, *cache, part(rows, done, std::min(rows.size(), done + kept)));
  }
}

TEST_P(DrafterLaws, PositionsTakenBackLeaveNoTrace) {
  const FloatRows rows = features(120, 5);
  const FloatRows wrong = features(20, 6);
  const auto cache = filled(part(rows, 0, 100));
  draft(*drafter_, *cache, 5);
  inject(*drafter_, *cache, part(wrong, 0, 6));
  draft(*drafter_, *cache, 5);
  cache->truncate(98);
  const auto first =
      static_cast<size_t>(cache->valid_from());  // slots that wrong rows took are lost
  inject(*drafter_, *cache, part(rows, 98, 120));
  const auto fresh = drafter_->new_cache(400);
  fresh->restart(static_cast<int64_t>(first));
  inject(*drafter_, *fresh, part(rows, first, 120));
  EXPECT_EQ(first_difference(draft(*drafter_, *cache, 5), draft(*drafter_, *fresh, 5)), "");
}

/// Far back, the ring has forgotten: what is gone is masked, never read.
TEST_P(DrafterLaws, ForgottenPositionsAreMasked) {
  const FloatRows rows = features(390, 7);
  const auto cache = filled(rows);
  const int64_t length = 390 - kKeptPositions - shape_.window / 2;
  cache->truncate(length);
  const auto first = static_cast<size_t>(cache->valid_from());
  EXPECT_GT(first, 0U);
  EXPECT_LT(first, static_cast<size_t>(length));
  const FloatRows found = draft(*drafter_, *cache, 5);
  const auto fresh = drafter_->new_cache(400);
  fresh->restart(static_cast<int64_t>(first));
  inject(*drafter_, *fresh, part(rows, first, static_cast<size_t>(length)));
  EXPECT_EQ(first_difference(found, draft(*drafter_, *fresh, 5)), "");
}

TEST_P(DrafterLaws, OtherRequestsChangeNothing) {
  const auto a = filled(features(3, 8));
  const auto b = filled(features(150, 9));
  const auto c = filled({});
  const FloatRows alone[] = {
      draft(*drafter_, *a, 1), draft(*drafter_, *b, 2), draft(*drafter_, *c, 3)};
  const DraftRequest requests[] = {{a.get(), 1}, {b.get(), 2}, {c.get(), 3}};
  const FloatRows together = draft(*drafter_, requests);
  FloatRows expected;
  for (const FloatRows& rows : alone) {
    expected.insert(expected.end(), rows.begin(), rows.end());
  }
  EXPECT_EQ(first_difference(together, expected), "");
}

/// With one layer, row j sees context key k exactly when n + j - k < window.
TEST_P(DrafterLaws, ContextRowMattersExactlyInsideTheWindow) {
  DFlashShape shape = shape_;
  shape.windowed = {true};
  shape.causal = {false};
  load(shape, 1);
  const FloatRows rows = features(60, 10);
  const FloatRows plain = draft(*drafter_, *filled(rows), 3);
  const FloatRows other = features(60, 11);
  for (int64_t key = std::max<int64_t>(0, 58 - shape.window); key < 60; key += 1 + key % 4) {
    FloatRows changed = rows;
    changed[static_cast<size_t>(key)] = other[static_cast<size_t>(key)];
    const FloatRows found = draft(*drafter_, *filled(changed), 3);
    for (int64_t j = 1; j < shape.block; ++j) {
      const bool inside = 60 + j - key < shape.window;
      const auto row = static_cast<size_t>(j) - 1;
      EXPECT_EQ(found[row] != plain[row], inside) << "key " << key << " row " << j;
    }
  }
}

/// The anchor reaches every mask row. In causal layers masks differ by position only through what
/// they see.
TEST_P(DrafterLaws, AnchorReachesEveryRow) {
  const auto cache = filled(features(20, 12));
  const FloatRows a = draft(*drafter_, *cache, 3);
  const FloatRows b = draft(*drafter_, *cache, 8);
  for (size_t j = 0; j < a.size(); ++j) {
    EXPECT_NE(a[j], b[j]) << "row " << j + 1;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Types,
    DrafterLaws,
    testing::Values(
        Case{DType::kF32, 30},
        Case{DType::kBF16, 56},
        Case{DType::kQ8_0, 60},
        Case{DType::kQ4_1, 57},
        Case{DType::kNVFP4ModelOpt, 8}
    ),
    [](const testing::TestParamInfo<Case>& param) {
      return std::string(dtype_facts(param.param.dtype).name);
    }
);

}  // namespace
}  // namespace octet::test
