// The K/V cache against a plain record of which position every slot holds.
#include <algorithm>

#include <gtest/gtest.h>

#include "octet/models/kv_cache.h"
#include "support/random_checkpoint.h"

namespace octet::test {
namespace {

constexpr int64_t kSpare = 8;

/// What a ring of `capacity` slots holds after any writes.
class SlotRecord {
 public:
  explicit SlotRecord(int64_t capacity) : slots_(static_cast<size_t>(capacity), -1) {}

  void write(int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      slots_[static_cast<size_t>(p) % slots_.size()] = p;
    }
  }
  void forget() { std::fill(slots_.begin(), slots_.end(), -1); }
  bool holds(int64_t begin, int64_t end) const {
    for (int64_t p = begin; p < end; ++p) {
      if (slots_[static_cast<size_t>(p) % slots_.size()] != p) {
        return false;
      }
    }
    return true;
  }

 private:
  std::vector<int64_t> slots_;
};

TEST(KvCache, RingsHoldWindowAndSpareRowsInWholeChunks) {
  const KvLayer layers[] = {{2, 4, 100}, {2, 4, 0}};
  const KvCache cache(layers, 1000, 30, KvType::kF32);
  EXPECT_EQ(cache.view(0).capacity, 192);
  EXPECT_EQ(cache.view(1).capacity, 1024);
  const KvCache brief(layers, 70, 30, KvType::kF32);
  EXPECT_EQ(brief.view(0).capacity, 128);
  EXPECT_EQ(brief.view(1).capacity, 128);
}

TEST(KvCache, ArraysStartOnCacheLines) {
  const KvLayer layers[] = {{1, 20, 30}, {3, 45, 0}, {2, 512, 0}};
  for (const KvType type : {KvType::kF32, KvType::kBF16, KvType::kQ8}) {
    const KvCache cache(layers, 100, kSpare, type);
    for (size_t layer = 0; layer < std::size(layers); ++layer) {
      const KvView& view = cache.view(layer);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(view.keys) % 64, 0U);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(view.values) % 64, 0U);
      EXPECT_TRUE(type == KvType::kQ8 || kv_row_bytes(type, view.head_dim) % 64 == 0);
    }
  }
}

TEST(KvCache, LongContextsCostNothingUntilWritten) {
  const std::vector<KvLayer> layers(24, KvLayer{2, 512, 0});
  KvCache cache(layers, 65536, 256, KvType::kBF16);
  EXPECT_EQ(cache.bytes(), 0);
  cache.extend(10);
  EXPECT_EQ(cache.bytes(), 24 * 2 * 10 * 2 * 512 * 2);
}

/// Appends, cuts and restarts by chance, with a record of the slots beside.
class RandomWalk {
 public:
  explicit RandomWalk(uint64_t seed)
      : random_(seed),
        window_(random_.integer(1, 100)),
        cache_(std::vector<KvLayer>{{1, 2, window_}}, kPositions, kSpare, KvType::kBF16),
        record_(cache_.view(0).capacity) {}

  void step() {
    const int64_t choice = random_.integer(0, 9);
    if (choice < 7 && cache_.length() + kSpare < kPositions) {
      append();
    } else if (choice < 9) {
      cut();
    } else {
      start_ = random_.integer(0, 1) * random_.integer(0, 200);
      cache_.restart(start_);
      record_.forget();
      written_ = start_;
    }
    EXPECT_LE(cache_.first(), cache_.length());
    EXPECT_TRUE(record_.holds(cache_.first(), cache_.length()));
  }

 private:
  static constexpr int64_t kPositions = 2000;

  void append() {
    const int64_t end = cache_.length() + random_.integer(1, kSpare);
    cache_.reserve(end);
    record_.write(cache_.length(), end);
    written_ = std::max(written_, end);
    cache_.extend(random_.integer(0, end - cache_.length()));
  }

  /// What was written last, up to the spare rows, can always be taken back, and then the window is
  /// whole.
  void cut() {
    const int64_t length = std::max<int64_t>(0, cache_.length() - random_.integer(0, 12));
    const bool possible = cache_.can_truncate(length);
    EXPECT_TRUE(possible || start_ > 0 || length < written_ - kSpare);
    cache_.truncate(length);
    EXPECT_TRUE(!possible || cache_.first() <= std::max<int64_t>(0, length + 1 - window_));
    start_ = std::min(start_, length);
  }

  RandomNumbers random_;
  int64_t window_;
  KvCache cache_;
  SlotRecord record_;
  int64_t written_ = 0;  // highest position since the last restart
  int64_t start_ = 0;    // where the last restart was
};

TEST(KvCache, FirstNeverClaimsWhatIsGone) {
  for (uint64_t seed = 1; seed <= 200 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomWalk walk(seed);
    for (int step = 0; step < 200; ++step) {
      walk.step();
    }
  }
}

TEST(KvCache, PositionsWithoutWindowSurviveCutsOfRings) {
  const KvLayer layers[] = {{1, 2, 10}, {1, 2, 0}};
  KvCache cache(layers, 500, kSpare, KvType::kF32);
  for (int i = 0; i < 50; ++i) {
    cache.extend(8);
  }
  cache.truncate(200);
  EXPECT_EQ(cache.first(0), 200);
  EXPECT_EQ(cache.first(1), 0);
  cache.extend(5);
  EXPECT_EQ(cache.first(0), 200);
  EXPECT_EQ(cache.first(1), 0);
}

TEST(KvCache, PoisonSparesExactlyWhatTheNextRowMaySee) {
  const KvLayer layers[] = {{1, 2, 10}, {1, 2, 0}};
  KvCache cache(layers, 300, kSpare, KvType::kF32);
  cache.extend(150);
  cache.poison();
  const auto is_nan = [&](size_t layer, int64_t position) {
    const KvView& view = cache.view(layer);
    const auto* values = reinterpret_cast<const float*>(view.values);
    const float value = values[position % view.capacity * kv_row_width(view.head_dim)];
    return value != value;
  };
  for (int64_t position = 100; position < 160; ++position) {
    EXPECT_EQ(is_nan(0, position), position < 141 || position >= 150) << position;
    EXPECT_EQ(is_nan(1, position), position >= 150) << position;
  }
}

}  // namespace
}  // namespace octet::test
