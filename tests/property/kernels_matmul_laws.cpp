// The law of products, with exact equality: the result of a row does not depend on the rows beside
// it, on threads, or on which products share a call.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/base/thread_pool.h"
#include "octet/kernels/cpu/cpu_matmul.h"
#include "octet/kernels/cpu/isa_table.h"
#include "support/random_checkpoint.h"

namespace octet::test {

namespace {

constexpr int64_t kOutputs = 331;  // eleven tiles, the last one short
constexpr int64_t kCols = 512;
constexpr int64_t kRows = 75;  // more than one pass over the weights

class MatmulLaws : public testing::TestWithParam<const cpu::KernelTable*> {};

std::vector<float> multiply(cpu::CpuMatmul& matmul, const Weight& weight, ConstRows x) {
  std::vector<float> y(x.rows * weight.rows);
  const Product product{&weight, {y.data(), x.rows, weight.rows, weight.rows}};
  matmul.matmul(x, {&product, 1});
  return y;
}

bool same_bits(const float* a, const float* b, int64_t count) {
  return std::memcmp(a, b, count * sizeof(float)) == 0;
}

TEST_P(MatmulLaws, RowsDoNotSeeEachOther) {
  ThreadPool pool(2);
  cpu::CpuMatmul matmul(*GetParam(), pool);
  constexpr int64_t kStride = kCols + cpu::kChunkValues;
  const std::vector<float> x = random_values(kRows * kStride, 3, 1.0F);
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    SCOPED_TRACE(dtype_facts(dtype).name);
    const int64_t cols = kCols + dtype_facts(dtype).block_values;  // the last chunk may be short
    const OwnedTensor owned = random_tensor("w", dtype, {kOutputs, cols}, 10 + d, 0.1F);
    const auto weight = matmul.prepare(Checkpoint(), owned.tensor);
    const ConstRows all(x.data(), kRows, cols, kStride);
    const std::vector<float> expected = multiply(matmul, *weight, all);
    for (int64_t rows = 1; rows <= 37; rows += rows < 16 ? 1 : 21) {
      const int64_t first = rows % 3 * 11;
      const std::vector<float> y = multiply(matmul, *weight, all.slice(first, rows));
      ASSERT_TRUE(same_bits(y.data(), expected.data() + first * kOutputs, rows * kOutputs))
          << rows << " rows";
    }
  }
}

TEST_P(MatmulLaws, ThreadsDoNotMatter) {
  const std::vector<float> x = random_values(kRows * kCols, 4, 1.0F);
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    SCOPED_TRACE(dtype_facts(dtype).name);
    const OwnedTensor owned = random_tensor("w", dtype, {kOutputs, kCols}, 40 + d, 0.1F);
    for (const int64_t rows : {int64_t{1}, int64_t{9}, kRows}) {
      std::vector<float> expected;
      for (int threads = 1; threads <= 4; ++threads) {
        ThreadPool pool(threads);
        cpu::CpuMatmul matmul(*GetParam(), pool);
        const auto weight = matmul.prepare(Checkpoint(), owned.tensor);
        const std::vector<float> y = multiply(matmul, *weight, {x.data(), rows, kCols, kCols});
        if (threads == 1) {
          expected = y;
        }
        ASSERT_TRUE(same_bits(y.data(), expected.data(), rows * kOutputs)) << threads << " threads";
      }
    }
  }
}

TEST_P(MatmulLaws, ProductsOfOneCallDoNotSeeEachOther) {
  ThreadPool pool(3);
  cpu::CpuMatmul matmul(*GetParam(), pool);
  std::vector<std::unique_ptr<Weight>> weights;
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    const int64_t outputs = 20 + 37 * (d % 5);
    const OwnedTensor owned = random_tensor("w", dtype, {outputs, kCols}, 70 + d, 0.1F);
    weights.push_back(matmul.prepare(Checkpoint(), owned.tensor));
  }
  for (const int64_t rows : {int64_t{1}, int64_t{8}, int64_t{21}}) {
    const std::vector<float> x = random_values(rows * kCols, 90 + rows, 1.0F);
    const ConstRows input(x.data(), rows, kCols, kCols);
    // Outputs side by side in one wide matrix, so that strides are not the widths.
    const int64_t stride = 2500;
    std::vector<float> joined(rows * stride, 7.0F);
    std::vector<Product> products;
    int64_t column = 1;
    for (const auto& weight : weights) {
      products.push_back({weight.get(), {joined.data() + column, rows, weight->rows, stride}});
      column += weight->rows + 1;
    }
    ASSERT_LE(column, stride);
    matmul.matmul(input, products);
    for (const Product& product : products) {
      const std::vector<float> alone = multiply(matmul, *product.weight, input);
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t outputs = product.weight->rows;
        ASSERT_TRUE(same_bits(product.out.row(r), alone.data() + r * outputs, outputs))
            << dtype_facts(product.weight->dtype).name << " row " << r;
        ASSERT_EQ(product.out.row(r)[outputs], 7.0F) << "wrote past the product's columns";
      }
    }
  }
}

TEST_P(MatmulLaws, StridesOfTheInputDoNotMatter) {
  ThreadPool pool(2);
  cpu::CpuMatmul matmul(*GetParam(), pool);
  const int64_t stride = kCols + 13;
  const int64_t rows = 11;
  const std::vector<float> wide = random_values(rows * stride, 5, 1.0F);
  std::vector<float> dense;
  for (int64_t r = 0; r < rows; ++r) {
    dense.insert(dense.end(), wide.begin() + r * stride, wide.begin() + r * stride + kCols);
  }
  for (const DType dtype : {DType::kBF16, DType::kQ8_0, DType::kQ4K}) {
    const OwnedTensor owned = random_tensor("w", dtype, {kOutputs, kCols}, 6, 0.1F);
    const auto weight = matmul.prepare(Checkpoint(), owned.tensor);
    EXPECT_EQ(
        multiply(matmul, *weight, {wide.data(), rows, kCols, stride}),
        multiply(matmul, *weight, {dense.data(), rows, kCols, kCols})
    );
  }
}

TEST_P(MatmulLaws, NoRowsAreFine) {
  ThreadPool pool(2);
  cpu::CpuMatmul matmul(*GetParam(), pool);
  const OwnedTensor owned = random_tensor("w", DType::kQ4K, {40, kCols}, 6, 0.1F);
  const auto weight = matmul.prepare(Checkpoint(), owned.tensor);
  EXPECT_TRUE(multiply(matmul, *weight, {nullptr, 0, kCols, kCols}).empty());
}

// docs/numerics.md: whoever has fused multiply-add computes the same bits, in whatever registers.
TEST(MatmulSets, AgreeToTheBit) {
  std::vector<const cpu::KernelTable*> tables = cpu::runnable_tables();
  tables.pop_back();  // the portable set, which may have to round twice
  if (tables.size() < 2) {
    GTEST_SKIP() << "this CPU runs fewer than two instruction sets with fused multiply-add";
  }
  ThreadPool pool(1);
  const int64_t rows = 9;
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    SCOPED_TRACE(dtype_facts(dtype).name);
    const OwnedTensor owned = random_tensor("w", dtype, {40, kCols}, 110 + d, 0.1F);
    const std::vector<float> x = random_values(rows * kCols, 120 + d, 1.0F);
    std::vector<float> expected;
    for (const cpu::KernelTable* table : tables) {
      cpu::CpuMatmul matmul(*table, pool);
      const auto weight = matmul.prepare(Checkpoint(), owned.tensor);
      const std::vector<float> y = multiply(matmul, *weight, {x.data(), rows, kCols, kCols});
      if (expected.empty()) {
        expected = y;
      }
      EXPECT_EQ(y, expected) << table->name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    InstructionSets,
    MatmulLaws,
    testing::ValuesIn(cpu::runnable_tables()),
    [](const auto& table) { return std::string(table.param->name); }
);

}  // namespace

}  // namespace octet::test
