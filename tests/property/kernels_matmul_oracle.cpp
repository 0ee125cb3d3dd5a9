// Every weight type on every instruction set against float64: with activations rounded as the
// contract says only the float32 sums may differ (a tight bound), and the result stays within what
// rounding can change of the exact one.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/base/thread_pool.h"
#include "octet/kernels/cpu/cpu_matmul.h"
#include "octet/kernels/cpu/isa_table.h"
#include "support/product_oracle.h"

namespace octet::test {

namespace {

/// Rounding of the float32 sums, relative to the sum of the magnitudes of all terms. Measured:
/// below 4e-7 (six units of 2^-24).
constexpr double kSumTolerance = 5e-7;

class MatmulOracle : public testing::TestWithParam<const cpu::KernelTable*> {};

struct Shape {
  int64_t outputs = 0;
  int64_t cols = 0;
  int64_t rows = 0;
};

void expect_near_oracle(
    const LogicalTensor& tensor, const std::vector<float>& x, const std::vector<float>& y
) {
  const int64_t cols = tensor.cols();
  const int64_t rows = static_cast<int64_t>(x.size()) / cols;
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = x.data() + r * cols;
    const RoundedRow rounded = round_activations(tensor.dtype, row, cols);
    for (int64_t o = 0; o < tensor.rows(); ++o) {
      const OracleDot dot = oracle_dot(tensor, o, row, rounded);
      const double value = static_cast<double>(y[r * tensor.rows() + o]);
      const double tolerance = kSumTolerance * dot.magnitude + 1e-30;
      ASSERT_NEAR(value, dot.rounded, tolerance) << "row " << r << " output " << o;
      ASSERT_NEAR(value, dot.exact, dot.rounding + tolerance) << "row " << r << " output " << o;
    }
  }
}

std::vector<float> multiply(
    cpu::CpuMatmul& matmul, const LogicalTensor& tensor, const std::vector<float>& x
) {
  const int64_t cols = tensor.cols();
  const int64_t rows = static_cast<int64_t>(x.size()) / cols;
  const std::unique_ptr<Weight> weight = matmul.prepare(Checkpoint(), tensor);
  std::vector<float> y(rows * tensor.rows(), -1.0F);
  const Product product{weight.get(), {y.data(), rows, tensor.rows(), tensor.rows()}};
  matmul.matmul({x.data(), rows, cols, cols}, {&product, 1});
  return y;
}

TEST_P(MatmulOracle, EveryWeightTypeAgreesWithFloat64) {
  ThreadPool pool(2);
  cpu::CpuMatmul matmul(*GetParam(), pool);
  uint64_t seed = 1;
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    for (const int64_t cols : column_counts(dtype)) {
      for (const auto& [outputs, rows] : {std::pair<int64_t, int64_t>{1, 1}, {33, 3}, {64, 9}}) {
        SCOPED_TRACE(
            testing::Message() << dtype_facts(dtype).name << " seed " << seed << " [" << outputs
                               << ", " << cols << "] rows " << rows
        );
        const RandomBlocks blocks(dtype, outputs, cols, seed);
        const std::vector<float> x = random_values(rows * cols, seed + 1, 0.8F);
        expect_near_oracle(blocks.tensor(), x, multiply(matmul, blocks.tensor(), x));
        if (HasFatalFailure()) {
          return;
        }
        seed += 2;
      }
    }
  }
}

TEST_P(MatmulOracle, ExtremeActivationsDoNotOverflow) {
  ThreadPool pool(1);
  cpu::CpuMatmul matmul(*GetParam(), pool);
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    SCOPED_TRACE(dtype_facts(dtype).name);
    const int64_t cols = 512;
    const RandomBlocks blocks(dtype, 40, cols, 77);
    // All codes 127, all -127, alternating, one outlier among zeros, all zero.
    std::vector<float> x(5 * cols, 0.0F);
    for (int64_t k = 0; k < cols; ++k) {
      x[k] = 3.0F;
      x[cols + k] = -3.0F;
      x[2 * cols + k] = k % 2 == 0 ? 3.0F : -3.0F;
    }
    x[3 * cols + 301] = 1000.0F;
    expect_near_oracle(blocks.tensor(), x, multiply(matmul, blocks.tensor(), x));
    if (HasFatalFailure()) {
      return;
    }
  }
}

TEST_P(MatmulOracle, LargestCodesDoNotSaturate) {
  ThreadPool pool(1);
  cpu::CpuMatmul matmul(*GetParam(), pool);
  for (const DType dtype :
       {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kIQ4NL}) {
    for (const int fill : {0x00, 0x7F, 0x80, 0xFF}) {
      SCOPED_TRACE(testing::Message() << dtype_facts(dtype).name << " bytes " << fill);
      RandomBlocks blocks(dtype, 32, 256, 5);
      const DTypeFacts& facts = dtype_facts(dtype);
      std::vector<std::byte> bytes(blocks.tensor().data.begin(), blocks.tensor().data.end());
      const int header = dtype == DType::kQ4_1 || dtype == DType::kQ5_1 ? 4 : 2;
      for (size_t i = 0; i < bytes.size(); ++i) {
        if (static_cast<int>(i) % facts.block_bytes >= header) {
          bytes[i] = static_cast<std::byte>(fill);
        }
      }
      LogicalTensor tensor = blocks.tensor();
      tensor.data = bytes;
      std::vector<float> x(2 * 256, 1.0F);
      std::fill(x.begin() + 256, x.end(), -1.0F);
      expect_near_oracle(tensor, x, multiply(matmul, tensor, x));
      if (HasFatalFailure()) {
        return;
      }
    }
  }
}

TEST_P(MatmulOracle, NanReachesItsOwnRowOnly) {
  ThreadPool pool(1);
  cpu::CpuMatmul matmul(*GetParam(), pool);
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    SCOPED_TRACE(dtype_facts(dtype).name);
    const RandomBlocks blocks(dtype, 8, 256, 6);
    std::vector<float> x = random_values(int64_t{3} * 256, 8, 1.0F);
    x[256 + 100] = std::nanf("");
    const std::vector<float> y = multiply(matmul, blocks.tensor(), x);
    for (int64_t o = 0; o < 8; ++o) {
      EXPECT_TRUE(std::isfinite(y[o]));
      EXPECT_TRUE(std::isnan(y[8 + o]));
      EXPECT_TRUE(std::isfinite(y[16 + o]));
    }
  }
}

TEST_P(MatmulOracle, RefusesWhatIsNotAMatrixOfWholeBlocks) {
  ThreadPool pool(1);
  cpu::CpuMatmul matmul(*GetParam(), pool);
  const RandomBlocks blocks(DType::kQ4_0, 4, 64, 1);
  LogicalTensor vector = blocks.tensor();
  vector.shape = {256};
  EXPECT_THROW(matmul.prepare(Checkpoint(), vector), Error);
  LogicalTensor ragged = blocks.tensor();
  ragged.shape = {4, 60};
  EXPECT_THROW(matmul.prepare(Checkpoint(), ragged), Error);
}

INSTANTIATE_TEST_SUITE_P(
    InstructionSets,
    MatmulOracle,
    testing::ValuesIn(cpu::runnable_tables()),
    [](const auto& table) { return std::string(table.param->name); }
);

}  // namespace

}  // namespace octet::test
