// Rows read back out of packed tiles against the rows of the file, bit for bit: every type, every
// row, matrices of the encoders, blocks of random codes, and blocks of any bytes at all.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/kernels/cpu/matmul/weight_packing.h"
#include "octet/kernels/cpu/matmul/weight_unpacking.h"
#include "octet/kernels/ops.h"
#include "support/product_oracle.h"
#include "support/vector_oracle.h"

namespace octet::test {
namespace {

std::string case_name(const LogicalTensor& tensor) {
  return std::string(dtype_facts(tensor.dtype).name) + " [" + std::to_string(tensor.rows()) + ", " +
         std::to_string(tensor.cols()) + "]";
}

void expect_rows_come_back(const LogicalTensor& tensor) {
  SCOPED_TRACE(case_name(tensor));
  const int64_t cols = tensor.cols();
  std::vector<std::byte> tile(
      static_cast<size_t>(cpu::tile_bytes(tensor.dtype, cols)), std::byte{0xA5}
  );
  std::vector<float> expected(static_cast<size_t>(cols));
  for (int64_t row = 0; row < tensor.rows(); ++row) {
    if (row % cpu::kTileRows == 0) {
      cpu::pack_tile(tensor, row / cpu::kTileRows, tile.data());
    }
    PaddedRows found(1, cols);
    cpu::unpack_row(
        tensor.dtype, cols, {tile.data(), row % cpu::kTileRows, tensor.scale}, found.view().row(0)
    );
    decode_rows(tensor, row, 1, expected.data());
    ASSERT_TRUE(same_bits(found.view().row(0), expected.data(), cols)) << "row " << row;
    ASSERT_TRUE(found.gaps_intact());
  }
}

/// Calls visit(type, columns, seed); rows are counts that do and do not fill the last tile.
template <typename Visit>
void for_all_shapes(Visit visit) {
  uint64_t seed = 1;
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    for (const int64_t cols : column_counts(dtype)) {
      for (const int64_t rows : {1, 32, 75}) {
        visit(dtype, rows, cols, seed++);
        if (testing::Test::HasFatalFailure()) {
          return;
        }
      }
    }
  }
}

TEST(WeightUnpacking, GivesBackTheRowsOfTheEncoders) {
  for_all_shapes([](DType dtype, int64_t rows, int64_t cols, uint64_t seed) {
    OwnedTensor owned = random_tensor("w", dtype, {rows, cols}, seed, 0.1F);
    if (dtype == DType::kNVFP4) {
      owned.tensor.scale = 0.37F;
    }
    expect_rows_come_back(owned.tensor);
  });
}

TEST(WeightUnpacking, GivesBackRowsOfRandomCodes) {
  for_all_shapes([](DType dtype, int64_t rows, int64_t cols, uint64_t seed) {
    expect_rows_come_back(RandomBlocks(dtype, rows, cols, seed).tensor());
  });
}

/// Infinite and NaN scales too. Not the scales of ModelOpt: negative ones and NaN are refused in
/// files, and packing does not keep them.
TEST(WeightUnpacking, GivesBackRowsOfAnyBytes) {
  for_all_shapes([](DType dtype, int64_t rows, int64_t cols, uint64_t seed) {
    const RandomBlocks blocks(dtype, rows, cols, seed);
    RandomNumbers random(seed + 1000);
    std::vector<std::byte> bytes(blocks.tensor().data.size());
    std::generate(bytes.begin(), bytes.end(), [&] {
      return static_cast<std::byte>(random.integer(0, 255));
    });
    LogicalTensor tensor = blocks.tensor();
    tensor.data = bytes;
    expect_rows_come_back(tensor);
  });
}

/// Which row, the tensor's scale, the factor, and that threads change nothing: for every way in
/// which a weight can be prepared.
TEST(WeightUnpacking, GatheringFromAWeightIsGatheringFromItsFile) {
  for (const ActivationMode mode :
       {ActivationMode::kFast, ActivationMode::kW4A16, ActivationMode::kW4A4}) {
    for (const int threads : {1, 3}) {
      const std::unique_ptr<Ops> ops =
          make_cpu_ops({.threads = threads, .isa = "", .activation = mode});
      for (int d = 0; d < kDTypeCount; ++d) {
        const auto dtype = static_cast<DType>(d);
        SCOPED_TRACE(testing::Message() << dtype_facts(dtype).name << ", " << threads);
        const int64_t rows = 75;
        const int64_t cols = 512;
        const RandomBlocks blocks(dtype, rows, cols, 5);
        LogicalTensor tensor = blocks.tensor();
        tensor.input_scale = 0.25F;
        const std::unique_ptr<Weight> weight = ops->prepare(Checkpoint(), tensor);
        std::vector<TokenId> ids = {0, 74, 31, 32, 31, 15, 16, 64};
        for (const float scale : {1.0F, 50.596443F}) {
          const auto count = static_cast<int64_t>(ids.size());
          PaddedRows expected(count, cols);
          PaddedRows found(count, cols);
          ops->gather_rows(tensor, ids, scale, expected.view());
          ops->gather_rows(*weight, ids, scale, found.view());
          for (int64_t r = 0; r < count; ++r) {
            ASSERT_TRUE(same_bits(found.view().row(r), expected.view().row(r), cols)) << r;
          }
          EXPECT_TRUE(found.gaps_intact());
        }
        PaddedRows none(0, cols);
        ops->gather_rows(*weight, {}, 1.0F, none.view());
      }
    }
  }
}

}  // namespace
}  // namespace octet::test
