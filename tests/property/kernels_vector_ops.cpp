// Norms, rotation, elementwise work, argmax, gathering and storing: each against float64, and the
// law that a row's result depends on nothing but the row.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "octet/kernels/ops.h"
#include "support/vector_oracle.h"

namespace octet {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): test vocabulary

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Around every multiple of the vector length, and the shapes of the models.
constexpr int64_t kWidths[] = {
    1, 2, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 80, 127, 200, 256, 2560};

using ForEachOps = std::function<void(Ops&, Random&)>;

void for_all_isas(const ForEachOps& body) {
  for (const std::string& isa : runnable_isas()) {
    SCOPED_TRACE(isa);
    const std::unique_ptr<Ops> ops = ops_for(isa, 2);
    Random random(7);
    body(*ops, random);
  }
}

void expect_near_row(const float* got, const std::vector<double>& want, double tolerance) {
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], tolerance * (1.0 + std::abs(want[i]))) << "column " << i;
  }
}

TEST(VectorOps, RmsNormMatchesTheFormula) {
  for_all_isas([](Ops& ops, Random& random) {
    for (const int64_t width : kWidths) {
      SCOPED_TRACE(width);
      for (const int64_t parts : {1, 3}) {
        PaddedRows x(3, width * parts);
        x.randomize(random, 5.0F);
        PaddedRows out(3, width * parts);
        const std::vector<float> weight = random.normals(width);
        for (const float* w : {weight.data(), static_cast<const float*>(nullptr)}) {
          ops.rms_norm(x.view(), width, w, 1e-6F, out.view());
          EXPECT_TRUE(out.gaps_intact());
          for (int64_t i = 0; i < 3 * parts; ++i) {
            const int64_t offset = i % parts * width;
            expect_near_row(
                out.view().row(i / parts) + offset,
                oracle_rms_norm(x.view().row(i / parts) + offset, w, width, 1e-6),
                2e-6
            );
          }
        }
        PaddedRows alias = x;
        ops.rms_norm(x.view(), width, weight.data(), 1e-6F, out.view());
        ops.rms_norm(alias.view(), width, weight.data(), 1e-6F, alias.view());
        EXPECT_TRUE(same_bits(alias.view().row(2), out.view().row(2), width * parts));
      }
    }
  });
}

TEST(VectorOps, RmsNormOfZerosIsZero) {
  for_all_isas([](Ops& ops, Random&) {
    std::vector<float> x(33, 0.0F);
    const Rows rows{x.data(), 1, 33, 33};
    ops.rms_norm(rows, 33, nullptr, 1e-6F, rows);
    EXPECT_EQ(x, std::vector<float>(33, 0.0F));
  });
}

TEST(VectorOps, AddRmsNormMatchesTheFormula) {
  for_all_isas([](Ops& ops, Random& random) {
    for (const int64_t width : kWidths) {
      SCOPED_TRACE(width);
      PaddedRows x(4, width);
      PaddedRows residual(4, width);
      x.randomize(random, 3.0F);
      residual.randomize(random, 10.0F);
      const PaddedRows before = residual;
      const std::vector<float> weight = random.normals(width);
      ops.add_rms_norm(residual.view(), x.view(), weight.data(), 1e-6F, 0.37F);
      EXPECT_TRUE(residual.gaps_intact());
      for (int64_t r = 0; r < 4; ++r) {
        std::vector<double> want = oracle_rms_norm(x.view().row(r), weight.data(), width, 1e-6);
        for (int64_t i = 0; i < width; ++i) {
          double& w = want[static_cast<size_t>(i)];
          w = (before.view().row(r)[i] + w) * 0.37F;
        }
        expect_near_row(residual.view().row(r), want, 3e-6);
      }
    }
  });
}

TEST(VectorOps, NormRopeNormsThenRotatesTheHalfSplitPairs) {
  for_all_isas([](Ops& ops, Random& random) {
    for (const int head_dim : {2, 16, 18, 64, 80, 128, 256, 512}) {
      for (const int64_t pairs :
           {int64_t{0}, int64_t{1}, int64_t{head_dim / 4}, int64_t{head_dim / 2}}) {
        SCOPED_TRACE(testing::Message() << "head_dim " << head_dim << " pairs " << pairs);
        constexpr int kHeads = 3;
        PaddedRows x(5, int64_t{kHeads} * head_dim);
        x.randomize(random, 4.0F);
        const PaddedRows before = x;
        PaddedRows cosines(5, pairs);
        PaddedRows sines(5, pairs);
        for (int64_t r = 0; r < 5; ++r) {
          for (int64_t i = 0; i < pairs; ++i) {
            const double angle = 3.0 * random.normal();
            cosines.view().row(r)[i] = static_cast<float>(std::cos(angle));
            sines.view().row(r)[i] = static_cast<float>(std::sin(angle));
          }
        }
        const std::vector<float> weight = random.normals(head_dim);
        ops.norm_rope(x.view(), head_dim, weight.data(), 1e-6F, {cosines.view(), sines.view()});
        EXPECT_TRUE(x.gaps_intact());
        for (int64_t i = 0; i < int64_t{5} * kHeads; ++i) {
          const int64_t r = i / kHeads;
          const int64_t offset = i % kHeads * head_dim;
          const std::vector<double> normed =
              oracle_rms_norm(before.view().row(r) + offset, weight.data(), head_dim, 1e-6);
          std::vector<double> want = normed;
          for (int64_t p = 0; p < pairs; ++p) {
            const double c = cosines.view().row(r)[p];
            const double s = sines.view().row(r)[p];
            const auto a = static_cast<size_t>(p);
            const auto b = static_cast<size_t>(p + head_dim / 2);
            want[a] = normed[a] * c - normed[b] * s;
            want[b] = normed[b] * c + normed[a] * s;
          }
          expect_near_row(x.view().row(r) + offset, want, 4e-6);
        }
      }
    }
  });
}

TEST(VectorOps, ElementwiseWorkMatchesTheFormulas) {
  using Apply = std::function<void(Ops&, Rows, ConstRows)>;
  using Oracle = std::function<double(double, double)>;
  const std::vector<std::pair<Apply, Oracle>> cases = {
      {[](Ops& ops, Rows x, ConstRows y) { ops.gelu_mul(x, y); },
       [](double x, double y) { return oracle_gelu(x) * y; }},
      {[](Ops& ops, Rows x, ConstRows y) { ops.silu_mul(x, y); },
       [](double x, double y) { return oracle_silu(x) * y; }},
      {[](Ops& ops, Rows x, ConstRows y) { ops.add(x, y); },
       [](double x, double y) { return x + y; }},
      {[](Ops& ops, Rows x, ConstRows y) { ops.add_scale(x, y, 0.7F); },
       [](double x, double y) { return (x + y) * 0.7F; }},
      {[](Ops& ops, Rows x, ConstRows) { ops.scale(x, -1.3F); },
       [](double x, double) { return x * -1.3F; }},
      {[](Ops& ops, Rows x, ConstRows) { ops.softcap(x, 2.0F); },
       [](double x, double) { return 2.0 * std::tanh(x / 2.0); }},
  };
  for_all_isas([&](Ops& ops, Random& random) {
    for (size_t which = 0; which < cases.size(); ++which) {
      for (const int64_t width : kWidths) {
        SCOPED_TRACE(testing::Message() << "case " << which << " width " << width);
        PaddedRows x(3, width);
        PaddedRows y(3, width, 8);
        x.randomize(random, 3.0F);
        y.randomize(random, 3.0F);
        const PaddedRows before = x;
        cases[which].first(ops, x.view(), y.view());
        EXPECT_TRUE(x.gaps_intact());
        for (int64_t r = 0; r < 3; ++r) {
          for (int64_t c = 0; c < width; ++c) {
            const double want = cases[which].second(before.view().row(r)[c], y.view().row(r)[c]);
            ASSERT_NEAR(x.view().row(r)[c], want, 2e-6 * (1.0 + std::abs(want)));
          }
        }
      }
    }
  });
}

TEST(VectorOps, ArgmaxTakesTheLowestIndexAmongEquals) {
  for_all_isas([](Ops& ops, Random& random) {
    for (const int64_t width : {1, 2, 16, 17, 64, 100, 4096, 4097, 9000, 70000}) {
      for (int round = 0; round < 8; ++round) {
        SCOPED_TRACE(testing::Message() << "width " << width << " round " << round);
        PaddedRows x(2, width);
        x.randomize(random);
        // Few distinct values, so that ties are everywhere.
        for (int64_t c = 0; c < width; ++c) {
          float& value = x.view().row(0)[c];
          value = std::round(value);
        }
        std::vector<TokenId> got(2);
        ops.argmax(x.view(), got);
        for (int64_t r = 0; r < 2; ++r) {
          const float* row = x.view().row(r);
          EXPECT_EQ(got[static_cast<size_t>(r)], std::max_element(row, row + width) - row);
        }
      }
    }
  });
}

TEST(VectorOps, ArgmaxNeverPicksNaNUnlessThereIsNothingElse) {
  for_all_isas([](Ops& ops, Random& random) {
    const auto argmax = [&](const std::vector<float>& x) {
      std::vector<TokenId> out(1);
      const auto n = static_cast<int64_t>(x.size());
      ops.argmax({x.data(), 1, n, n}, out);
      return out[0];
    };
    for (const int64_t width : {3, 40, 5000, 50000}) {
      SCOPED_TRACE(width);
      const auto size = static_cast<size_t>(width);
      EXPECT_EQ(argmax(std::vector<float>(size, kNaN)), 0);
      EXPECT_EQ(argmax(std::vector<float>(size, -kInfinity)), 0);
      std::vector<float> x(size, kNaN);
      const int64_t last = width - 1;
      x[static_cast<size_t>(last)] = -kInfinity;
      EXPECT_EQ(argmax(x), last);
      x[1] = -3.0F;
      EXPECT_EQ(argmax(x), 1);
      const int64_t place = random.integer(1, last);
      x[static_cast<size_t>(place)] = kInfinity;
      EXPECT_EQ(argmax(x), place);
    }
    EXPECT_EQ(argmax({-0.0F, 0.0F}), 0);
    EXPECT_EQ(argmax({-1.0F, 0.0F, -0.0F}), 1);
  });
}

/// Every type through decode_rows, which has its own tests; here: which row, and the scale.
TEST(VectorOps, GatherDecodesTheRowsAskedFor) {
  for_all_isas([](Ops& ops, Random& random) {
    constexpr int64_t kTableRows = 50;
    constexpr int64_t kCols = 96;
    std::vector<float> f32 = random.normals(kTableRows * kCols);
    std::vector<uint16_t> bf16;
    bf16.reserve(f32.size());
    for (float& value : f32) {
      bf16.push_back(oracle_bf16(value));
      value = bf16_value(bf16.back());
    }
    LogicalTensor tables[2];
    tables[0].dtype = DType::kF32;
    tables[0].data = std::as_bytes(std::span(f32));
    tables[1].dtype = DType::kBF16;
    tables[1].data = std::as_bytes(std::span(bf16));
    for (LogicalTensor& table : tables) {
      table.shape = {kTableRows, kCols};
      for (const int64_t rows : {0, 1, 3, 100}) {
        for (const float scale : {1.0F, 50.596443F}) {
          std::vector<TokenId> ids(static_cast<size_t>(rows));
          for (TokenId& id : ids) {
            id = static_cast<TokenId>(random.integer(0, kTableRows - 1));
          }
          PaddedRows out(rows, kCols);
          ops.gather_rows(table, ids, scale, out.view());
          EXPECT_TRUE(out.gaps_intact());
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t c = 0; c < kCols; ++c) {
              const float value = f32[static_cast<size_t>(ids[static_cast<size_t>(r)] * kCols + c)];
              ASSERT_EQ(out.view().row(r)[c], value * scale);
            }
          }
        }
      }
    }
  });
}

/// Half a step of the codes, and the rounding of the scale to a half: how far a value of Q8_0 may
/// be from x, in a block row[begin, end).
double q8_error_bound(const float* row, int64_t begin, int64_t end, double x) {
  double largest = 0.0;
  for (int64_t i = begin; i < end; ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(row[i])));
  }
  const double step = largest / 127.0;
  const double smallest_half = std::ldexp(1.0, -24);
  const double scale_error = std::max(step * std::ldexp(1.0, -11), smallest_half / 2);
  return 0.5001 * step + (std::abs(x) / step + 0.51) * scale_error;
}

TEST(VectorOps, StoreKvAsQ8KeepsNanZeroAndTinyBlocksApart) {
  for_all_isas([](Ops& ops, Random& random) {
    constexpr int kHeadDim = 128;
    PaddedRows k(1, kHeadDim);
    k.randomize(random);
    float* row = k.view().row(0);
    row[5] = std::numeric_limits<float>::quiet_NaN();   // block 0
    std::fill_n(row + 32, 32, 0.0F);                    // block 1
    std::fill_n(row + 64, 32, 1e-12F);                  // block 2: below the least scale
    row[96] = -std::numeric_limits<float>::infinity();  // block 3
    KvStore kv(KvType::kQ8, 64, 1, kHeadDim);
    const int64_t position = 3;
    ops.store_kv(k.view(), k.view(), {&position, 1}, kv.view());
    for (int c = 0; c < kHeadDim; ++c) {
      const bool broken = c < 32 || c >= 96;
      EXPECT_EQ(std::isnan(kv.key(0, position, c)), broken) << c;
      EXPECT_TRUE(broken || kv.value(0, position, c) == 0.0) << c;
    }
  });
}

TEST(VectorOps, StoreKvWritesTheSlotsOfThePositionsOnly) {
  for_all_isas([](Ops& ops, Random& random) {
    for (const KvType type : {KvType::kBF16, KvType::kF32, KvType::kQ8}) {
      for (const int head_dim : {16, 20, 45, 256}) {
        constexpr int kHeads = 2;
        constexpr int64_t kCapacity = 128;
        KvStore kv(type, kCapacity, kHeads, head_dim);
        const std::vector<int64_t> positions = {126, 127, 128, 129, 1000};
        PaddedRows k(5, int64_t{kHeads} * head_dim);
        PaddedRows v(5, int64_t{kHeads} * head_dim);
        k.randomize(random);
        v.randomize(random);
        ops.store_kv(k.view(), v.view(), positions, kv.view());
        const auto expect_stored = [&](double stored, ConstRows rows, int64_t r, int64_t c) {
          const float x = rows.row(r)[c];
          if (type == KvType::kF32) {
            ASSERT_EQ(stored, x);
          } else if (type == KvType::kBF16) {
            ASSERT_EQ(stored, bf16_value(oracle_bf16(x)));
          } else {
            const int64_t head_begin = c / head_dim * head_dim;
            const int64_t block = head_begin + (c - head_begin) / 32 * 32;
            const int64_t block_end = std::min(block + 32, head_begin + head_dim);
            ASSERT_LE(std::abs(stored - x), q8_error_bound(rows.row(r), block, block_end, x));
          }
        };
        std::vector<bool> written(kCapacity, false);
        for (int64_t r = 0; r < 5; ++r) {
          const int64_t p = positions[static_cast<size_t>(r)];
          written[static_cast<size_t>(p % kCapacity)] = true;
          for (int64_t c = 0; c < int64_t{kHeads} * head_dim; ++c) {
            const int head = static_cast<int>(c / head_dim);
            expect_stored(kv.key(head, p, c % head_dim), k.view(), r, c);
            expect_stored(kv.value(head, p, c % head_dim), v.view(), r, c);
          }
        }
        for (int64_t slot = 0; slot < kCapacity; ++slot) {
          for (int head = 0; head < kHeads && !written[static_cast<size_t>(slot)]; ++head) {
            ASSERT_TRUE(std::isnan(kv.key(head, slot, 0)));
            ASSERT_TRUE(std::isnan(kv.value(head, slot, head_dim - 1)));
          }
        }
      }
    }
  });
}

/// Every operation that changes rows in place, one after the other.
void apply_all(Ops& ops, Rows x, ConstRows y, const float* weight) {
  ops.add(x, y);
  ops.gelu_mul(x, y);
  ops.rms_norm(x, x.cols, weight, 1e-6F, x);
  ops.silu_mul(x, y);
  ops.add_rms_norm(x, y, weight, 1e-6F, 1.7F);
  const ConstRows angles(y.data, y.rows, 20, y.stride);  // any numbers will do
  ops.norm_rope(x, 64, weight, 1e-6F, {angles, angles});
  ops.add_scale(x, y, 0.9F);
  ops.softcap(x, 3.0F);
  ops.scale(x, 1.1F);
}

TEST(VectorOps, ARowDependsOnItselfAlone) {
  // Rows long enough for the threads to share the work of one.
  constexpr int64_t kCols = 64 * 700;
  for (const std::string& isa : runnable_isas()) {
    SCOPED_TRACE(isa);
    Random random(11);
    PaddedRows input(16, kCols);
    PaddedRows other(16, kCols);
    input.randomize(random);
    other.randomize(random);
    const std::vector<float> weight = random.normals(kCols);
    PaddedRows alone = input;
    const std::unique_ptr<Ops> single = ops_for(isa, 1);
    std::vector<TokenId> alone_best(16);
    for (int64_t r = 0; r < 16; ++r) {
      const Rows row = alone.view().slice(r, 1);
      apply_all(*single, row, ConstRows(other.view()).slice(r, 1), weight.data());
      single->argmax(row, std::span(alone_best).subspan(static_cast<size_t>(r), 1));
    }
    for (int threads = 1; threads <= 4; ++threads) {
      const std::unique_ptr<Ops> ops = ops_for(isa, threads);
      for (const int64_t rows : {1, 2, 3, 5, 8, 16}) {
        SCOPED_TRACE(testing::Message() << threads << " threads, " << rows << " rows");
        PaddedRows together = input;
        const Rows some = together.view().slice(0, rows);
        apply_all(*ops, some, ConstRows(other.view()).slice(0, rows), weight.data());
        std::vector<TokenId> best(static_cast<size_t>(rows));
        ops->argmax(some, best);
        for (int64_t r = 0; r < rows; ++r) {
          ASSERT_TRUE(same_bits(together.view().row(r), alone.view().row(r), kCols)) << "row " << r;
          ASSERT_EQ(best[static_cast<size_t>(r)], alone_best[static_cast<size_t>(r)]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace octet
