// Attention: against float64, and the law that a row's result depends on its own query and keys
// alone.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/kernels/ops.h"
#include "support/vector_oracle.h"

namespace octet {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): test vocabulary

struct Shape {
  int kv_heads = 1;
  int heads_per_kv = 1;
  int head_dim = 64;
  KvType type = KvType::kBF16;

  int heads() const { return kv_heads * heads_per_kv; }
  int64_t q_cols() const { return int64_t{heads()} * head_dim; }
};

/// One sequence: its cache with positions [first, end) stored, queries and their ranges.
struct Sequence {
  Shape shape;
  std::unique_ptr<KvStore> kv;
  std::vector<KeyRange> ranges;
  PaddedRows queries{0, 1};

  int64_t rows() const { return static_cast<int64_t>(ranges.size()); }
};

void store(Ops& ops, Random& random, Sequence& sequence, int64_t first, int64_t end) {
  const int64_t cols = int64_t{sequence.shape.kv_heads} * sequence.shape.head_dim;
  PaddedRows k(end - first, cols);
  PaddedRows v(end - first, cols);
  k.randomize(random);
  v.randomize(random);
  std::vector<int64_t> positions;
  for (int64_t p = first; p < end; ++p) {
    positions.push_back(p);
  }
  ops.store_kv(k.view(), v.view(), positions, sequence.kv->view());
}

/// Rows at positions end - rows .. end - 1 that look back `window` positions (0: all), themselves
/// included.
Sequence causal_sequence(
    Random& random, const Shape& shape, int64_t capacity, int64_t end, int64_t rows, int64_t window
) {
  Sequence sequence;
  sequence.shape = shape;
  sequence.kv = std::make_unique<KvStore>(shape.type, capacity, shape.kv_heads, shape.head_dim);
  int64_t first = end;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t stop = end - rows + r + 1;
    const int64_t begin = window == 0 ? 0 : std::max<int64_t>(0, stop - window);
    sequence.ranges.push_back({begin, stop});
    first = std::min(first, begin);
  }
  const std::unique_ptr<Ops> ops = ops_for("portable", 1);
  store(*ops, random, sequence, first, end);
  sequence.queries = PaddedRows(rows, shape.q_cols());
  sequence.queries.randomize(random);
  return sequence;
}

float scale_of(const Shape& shape) {
  return 1.0F / std::sqrt(static_cast<float>(shape.head_dim));
}

/// Rows [first, first + count) of the sequence in one call.
PaddedRows attend(Ops& ops, Sequence& sequence, int64_t first, int64_t count) {
  PaddedRows out(count, sequence.shape.q_cols());
  const AttendSegment segment{
      0,
      sequence.kv->view(),
      std::span(sequence.ranges).subspan(static_cast<size_t>(first), static_cast<size_t>(count))};
  ops.attend(
      sequence.queries.view().slice(first, count),
      sequence.shape.heads(),
      scale_of(sequence.shape),
      {&segment, 1},
      out.view()
  );
  return out;
}
PaddedRows attend(Ops& ops, Sequence& sequence) {
  return attend(ops, sequence, 0, sequence.rows());
}

void expect_oracle(Sequence& sequence, PaddedRows& out) {
  const Shape& shape = sequence.shape;
  EXPECT_TRUE(out.gaps_intact());
  for (int64_t r = 0; r < sequence.rows(); ++r) {
    for (int head = 0; head < shape.heads(); ++head) {
      const int64_t offset = int64_t{head} * shape.head_dim;
      const std::vector<double> want = oracle_attend(
          sequence.queries.view().row(r) + offset,
          *sequence.kv,
          head / shape.heads_per_kv,
          shape.head_dim,
          sequence.ranges[static_cast<size_t>(r)],
          scale_of(shape)
      );
      for (int i = 0; i < shape.head_dim; ++i) {
        ASSERT_NEAR(out.view().row(r)[offset + i], want[static_cast<size_t>(i)], 4e-6)
            << "row " << r << " head " << head << " column " << i;
      }
    }
  }
}

void expect_rows_equal(PaddedRows& a, int64_t a_row, PaddedRows& b, int64_t b_row) {
  ASSERT_TRUE(same_bits(a.view().row(a_row), b.view().row(b_row), a.view().cols))
      << "rows " << a_row << " and " << b_row;
}

Shape random_shape(Random& random) {
  constexpr int kHeadDims[] = {1, 8, 16, 20, 31, 32, 33, 48, 64, 80, 96, 128, 160, 256};
  Shape shape;
  shape.kv_heads = static_cast<int>(random.integer(1, 3));
  shape.heads_per_kv = static_cast<int>(random.integer(1, 6));
  shape.head_dim = kHeadDims[random.integer(0, std::size(kHeadDims) - 1)];
  constexpr KvType kTypes[] = {KvType::kF32, KvType::kBF16, KvType::kBF16, KvType::kQ8};
  shape.type = kTypes[random.integer(0, 3)];
  return shape;
}

TEST(VectorAttend, MatchesTheOracleOnRandomShapesAndRanges) {
  for (const std::string& isa : runnable_isas()) {
    const std::unique_ptr<Ops> ops = ops_for(isa, 2);
    for (uint64_t seed = 0; seed < 40; ++seed) {
      Random random(seed);
      const Shape shape = random_shape(random);
      const int64_t end = random.integer(1, 700);
      const int64_t rows = std::min(end, random.integer(1, 12));
      const int64_t window = random.integer(0, 2) == 0 ? random.integer(1, 300) : 0;
      SCOPED_TRACE(testing::Message() << isa << " seed " << seed << " head_dim " << shape.head_dim);
      Sequence sequence = causal_sequence(random, shape, (end + 63) / 64 * 64, end, rows, window);
      // Also ranges that no mask of a model gives: any stretch of what is stored.
      const int64_t stored = sequence.ranges.front().begin;
      for (KeyRange& range : sequence.ranges) {
        if (random.integer(0, 3) == 0) {
          range.begin = random.integer(stored, end - 1);
          range.end = random.integer(range.begin + 1, end);
        }
      }
      PaddedRows out = attend(*ops, sequence);
      expect_oracle(sequence, out);
    }
  }
}

TEST(VectorAttend, MatchesTheOracleAtTheShapesOfTheModels) {
  for (const std::string& isa : runnable_isas()) {
    const std::unique_ptr<Ops> ops = ops_for(isa, 2);
    Random random(3);
    SCOPED_TRACE(isa);
    Sequence full = causal_sequence(random, {2, 4, 512, KvType::kBF16}, 1344, 1300, 8, 0);
    PaddedRows out = attend(*ops, full);
    expect_oracle(full, out);
    for (const KvType type : {KvType::kBF16, KvType::kQ8}) {
      Sequence sliding = causal_sequence(random, {2, 4, 256, type}, 576, 1300, 8, 512);
      out = attend(*ops, sliding);
      expect_oracle(sliding, out);
    }
  }
}

TEST(VectorAttend, LargeScoresDoNotOverflow) {
  for (const std::string& isa : runnable_isas()) {
    SCOPED_TRACE(isa);
    const std::unique_ptr<Ops> ops = ops_for(isa, 1);
    Random random(5);
    Sequence sequence = causal_sequence(random, {1, 2, 64, KvType::kF32}, 640, 600, 2, 0);
    for (int64_t r = 0; r < 2; ++r) {
      for (int64_t c = 0; c < sequence.shape.q_cols(); ++c) {
        sequence.queries.view().row(r)[c] *= 1000.0F;  // scores of thousands: softmax picks one key
      }
    }
    PaddedRows out = attend(*ops, sequence);
    for (int64_t r = 0; r < 2; ++r) {
      for (int head = 0; head < 2; ++head) {
        const std::vector<double> want = oracle_attend(
            sequence.queries.view().row(r) + head * 64,
            *sequence.kv,
            0,
            64,
            sequence.ranges[static_cast<size_t>(r)],
            scale_of(sequence.shape)
        );
        for (int i = 0; i < 64; ++i) {
          ASSERT_NEAR(out.view().row(r)[head * 64 + i], want[static_cast<size_t>(i)], 1e-2);
        }
      }
    }
  }
}

TEST(VectorAttend, RowsTogetherEqualRowsAloneOnAnyNumberOfThreads) {
  for (const std::string& isa : runnable_isas()) {
    const std::unique_ptr<Ops> single = ops_for(isa, 1);
    for (const Shape& shape :
         {Shape{2, 4, 64, KvType::kBF16},
          Shape{1, 3, 40, KvType::kF32},
          Shape{1, 4, 96, KvType::kQ8},
          Shape{2, 1, 256, KvType::kBF16}}) {
      Random random(17);
      Sequence sequence = causal_sequence(random, shape, 1280, 1250, 16, 900);
      std::vector<PaddedRows> alone;
      for (int64_t r = 0; r < 16; ++r) {
        alone.push_back(attend(*single, sequence, r, 1));
      }
      for (int threads = 1; threads <= 4; ++threads) {
        const std::unique_ptr<Ops> ops = ops_for(isa, threads);
        for (int64_t rows = 1; rows <= 16; ++rows) {
          SCOPED_TRACE(
              testing::Message() << isa << " " << threads << " threads " << rows << " rows"
          );
          const int64_t first = (16 - rows) / 2;
          PaddedRows together = attend(*ops, sequence, first, rows);
          for (int64_t r = 0; r < rows; ++r) {
            expect_rows_equal(together, r, alone[static_cast<size_t>(first + r)], 0);
          }
        }
      }
    }
  }
}

TEST(VectorAttend, SegmentsDoNotInfluenceEachOther) {
  const Shape shape{2, 2, 48, KvType::kBF16};
  for (const std::string& isa : runnable_isas()) {
    for (int threads = 1; threads <= 3; ++threads) {
      SCOPED_TRACE(testing::Message() << isa << " " << threads << " threads");
      const std::unique_ptr<Ops> ops = ops_for(isa, threads);
      Random random(23);
      std::vector<Sequence> sequences;
      std::vector<PaddedRows> alone;
      int64_t rows = 0;
      for (int i = 0; i < 5; ++i) {
        const int64_t end = random.integer(30, 600);
        sequences.push_back(causal_sequence(random, shape, 640, end, random.integer(1, 20), 0));
        alone.push_back(attend(*ops, sequences.back()));
        rows += sequences.back().rows();
      }
      // All in one batch, in both orders, with rows of no segment in between.
      for (const bool reversed : {false, true}) {
        PaddedRows q(rows + 5, shape.q_cols());
        PaddedRows out(rows + 5, shape.q_cols());
        std::vector<AttendSegment> segments;
        std::vector<size_t> order = {0, 1, 2, 3, 4};
        if (reversed) {
          std::reverse(order.begin(), order.end());
        }
        int64_t row = 0;
        for (const size_t i : order) {
          segments.push_back({row, sequences[i].kv->view(), sequences[i].ranges});
          for (int64_t r = 0; r < sequences[i].rows(); ++r, ++row) {
            std::copy_n(sequences[i].queries.view().row(r), shape.q_cols(), q.view().row(row));
          }
          ++row;
        }
        ops->attend(q.view(), shape.heads(), scale_of(shape), segments, out.view());
        for (size_t s = 0; s < segments.size(); ++s) {
          for (int64_t r = 0; r < sequences[order[s]].rows(); ++r) {
            expect_rows_equal(out, segments[s].first_row + r, alone[order[s]], r);
          }
        }
        EXPECT_EQ(out.view().row(segments[1].first_row - 1)[0], PaddedRows::kGap);
      }
    }
  }
}

TEST(VectorAttend, ARingGivesTheSameAsAFlatCacheAtEveryOffset) {
  for (const std::string& isa : runnable_isas()) {
    const std::unique_ptr<Ops> ops = ops_for(isa, 1);
    for (int64_t end = 320; end < 320 + 192 + 3; ++end) {
      SCOPED_TRACE(testing::Message() << isa << " end " << end);
      const Shape shape{1, 4, 32, end % 2 == 0 ? KvType::kBF16 : KvType::kQ8};
      // The same random numbers into a ring of 192 and into a cache for every position.
      Random ring_random(31);
      Random flat_random(31);
      Sequence ring = causal_sequence(ring_random, shape, 192, end, 5, 130);
      Sequence flat = causal_sequence(flat_random, shape, 576, end, 5, 130);
      PaddedRows from_ring = attend(*ops, ring);
      PaddedRows from_flat = attend(*ops, flat);
      for (int64_t r = 0; r < 5; ++r) {
        expect_rows_equal(from_ring, r, from_flat, r);
      }
    }
  }
}

/// Slots outside a row's range hold NaN, also those that another row of the same call needs.
TEST(VectorAttend, WhatARowMayNotSeeCannotReachIt) {
  for (const std::string& isa : runnable_isas()) {
    const std::unique_ptr<Ops> ops = ops_for(isa, 2);
    for (const Shape& shape :
         {Shape{2, 4, 64, KvType::kBF16},
          Shape{1, 2, 36, KvType::kF32},
          Shape{1, 1, 16, KvType::kBF16},
          Shape{1, 4, 48, KvType::kQ8},
          Shape{1, 3, 32, KvType::kF32}}) {
      for (int64_t edge = 250; edge < 330;
           edge += 1) {  // window edges around a chunk's and a group's end
        SCOPED_TRACE(
            testing::Message() << isa << " head_dim " << shape.head_dim << " edge " << edge
        );
        Random random(41);
        constexpr int64_t kRows = 5;
        Sequence sequence = causal_sequence(random, shape, 448, edge + 70, kRows, 66);
        PaddedRows clean = attend(*ops, sequence);
        // Row 2 sees [begin, end); everything else becomes NaN.
        const KeyRange seen = sequence.ranges[2];
        for (int64_t p = seen.begin - 10; p < seen.begin; ++p) {
          sequence.kv->poison(p);
        }
        for (int64_t p = seen.end; p < seen.end + 10; ++p) {
          sequence.kv->poison(p);
        }
        PaddedRows poisoned = attend(*ops, sequence);
        expect_rows_equal(clean, 2, poisoned, 2);
        // The test bites: the neighbours see a poisoned key.
        EXPECT_TRUE(std::isnan(poisoned.view().row(1)[0]));
        EXPECT_TRUE(std::isnan(poisoned.view().row(3)[0]));
      }
    }
  }
}

TEST(VectorAttend, LongContextsSplitIntoWavesWithoutATrace) {
  // Few units of work, and partial results of more groups than the buffer for them holds.
  const std::string isa = runnable_isas().front();
  Random random(43);
  Sequence sequence = causal_sequence(random, {3, 8, 512, KvType::kBF16}, 5760, 5700, 4, 5650);
  PaddedRows one = attend(*ops_for(isa, 1), sequence);
  PaddedRows many = attend(*ops_for(isa, 4), sequence);
  for (int64_t r = 0; r < 4; ++r) {
    expect_rows_equal(one, r, many, r);
  }
}

TEST(VectorAttend, SetsWithFusedMultiplyAddAgreeToTheBit) {
  const std::vector<std::string> isas = runnable_isas();
  if (isas.size() < 3) {
    GTEST_SKIP() << "this CPU runs one set with fused multiply-add only";
  }
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random random(100 + seed);
    const Shape shape = random_shape(random);
    Sequence sequence = causal_sequence(random, shape, 640, 600, 6, 400);
    const std::unique_ptr<Ops> first = ops_for(isas.front(), 1);
    PaddedRows want = attend(*first, sequence);
    for (size_t i = 1; i + 1 < isas.size(); ++i) {
      SCOPED_TRACE(testing::Message() << isas[i] << " seed " << seed);
      PaddedRows got = attend(*ops_for(isas[i], 1), sequence);
      for (int64_t r = 0; r < 6; ++r) {
        expect_rows_equal(got, r, want, r);
      }
    }
  }
}

TEST(VectorAttend, NoRowsNoSegmentsNoWork) {
  const std::unique_ptr<Ops> ops = ops_for("portable", 2);
  PaddedRows q(0, 64);
  ops->attend(q.view(), 1, 1.0F, {}, q.view());
  KvStore kv(KvType::kBF16, 64, 1, 64);
  const AttendSegment empty{0, kv.view(), {}};
  ops->attend(q.view(), 1, 1.0F, {&empty, 1}, q.view());
}

}  // namespace
}  // namespace octet
