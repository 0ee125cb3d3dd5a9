// The two ways of serving NVFP4 weights, on every instruction set: against published exact values,
// against float64 with activations rounded here a second time, and under the law of products.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/base/thread_pool.h"
#include "octet/kernels/cpu/cpu_matmul.h"
#include "octet/kernels/cpu/isa_table.h"
#include "octet/tensor/nvfp4_activations.h"
#include "octet/tensor/nvfp4_layouts.h"
#include "support/nvfp4_activation_oracle.h"
#include "support/product_oracle.h"

namespace octet::test {
namespace {

/// Of the sum of the magnitudes of all terms.
constexpr double kSumTolerance = 5e-7;
constexpr double kGoldenTolerance = 1e-6;

class Nvfp4Modes : public testing::TestWithParam<const cpu::KernelTable*> {};

std::vector<float> multiply(
    cpu::CpuMatmul& matmul, const Weight& weight, const float* x, int64_t rows
) {
  std::vector<float> y(static_cast<size_t>(rows * weight.rows), -1.0F);
  const Product product{&weight, {y.data(), rows, weight.rows, weight.rows}};
  matmul.matmul({x, rows, weight.cols, weight.cols}, {&product, 1});
  return y;
}

std::vector<double> w4a16_row(const float* row, int64_t cols) {
  std::vector<double> values;
  for (int64_t k = 0; k < cols; ++k) {
    values.push_back(oracle_bf16(row[k]));
  }
  return values;
}

void expect_near(
    const LogicalTensor& tensor, const std::vector<double>& row, const float* y, double tolerance
) {
  for (int64_t o = 0; o < tensor.rows(); ++o) {
    double sum = 0.0;
    double magnitude = 0.0;
    for (int64_t k = 0; k < tensor.cols(); ++k) {
      const double term = oracle_weight(tensor, o, k).value * row[static_cast<size_t>(k)];
      sum += term;
      magnitude += std::fabs(term);
    }
    ASSERT_NEAR(static_cast<double>(y[o]), sum, tolerance * magnitude + 1e-30) << "output " << o;
  }
}

constexpr ActivationMode kModes[] = {ActivationMode::kW4A16, ActivationMode::kW4A4};

TEST_P(Nvfp4Modes, AgreeWithFloat64) {
  ThreadPool pool(2);
  uint64_t seed = 1;
  for (const ActivationMode mode : kModes) {
    cpu::CpuMatmul matmul(*GetParam(), pool, mode);
    for (const DType dtype : {DType::kNVFP4, DType::kNVFP4ModelOpt}) {
      const int64_t block = dtype_facts(dtype).block_values;
      for (const int64_t cols : {block, 3 * block, int64_t{256}, 512 + block}) {
        const int64_t rows = 9;
        SCOPED_TRACE(
            testing::Message() << activation_mode_name(mode) << ' ' << dtype_facts(dtype).name
                               << " cols " << cols << " seed " << seed
        );
        const RandomBlocks blocks(dtype, 33, cols, seed);
        LogicalTensor tensor = blocks.tensor();
        tensor.input_scale = 2.0F / kNvfp4InputRange;  // some blocks saturate
        const std::vector<float> x = random_values(rows * cols, seed + 1, 0.8F);
        const auto weight = matmul.prepare(Checkpoint(), tensor);
        EXPECT_EQ(weight->float_activations, mode == ActivationMode::kW4A16);
        const std::vector<float> y = multiply(matmul, *weight, x.data(), rows);
        for (int64_t r = 0; r < rows; ++r) {
          const float* row = x.data() + r * cols;
          expect_near(
              tensor,
              mode == ActivationMode::kW4A16 ? w4a16_row(row, cols)
                                             : oracle_w4a4_row(row, cols, *tensor.input_scale),
              y.data() + r * 33,
              kSumTolerance
          );
          if (HasFatalFailure()) {
            return;
          }
        }
        seed += 2;
      }
    }
  }
}

template <typename T>
std::vector<T> golden(const std::string& name) {
  std::ifstream file(OCTET_SOURCE_DIR "/tests/golden/quant/nvfp4/" + name, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  EXPECT_FALSE(bytes.empty()) << name;
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

/// The published weight, 8 x 64, in both layouts.
struct GoldenWeight {
  std::vector<std::byte> codes = golden<std::byte>("w.weight.u8");
  std::vector<std::byte> scales = golden<std::byte>("w.weight_scale.e4m3");
  std::vector<std::byte> blocks = golden<std::byte>("w.ggml_nvfp4.q");

  LogicalTensor tensor(DType dtype) const {
    LogicalTensor w;
    w.name = "golden.weight";
    w.dtype = dtype;
    w.shape = {8, 64};
    w.data = dtype == DType::kNVFP4 ? blocks : codes;
    w.block_scales = dtype == DType::kNVFP4 ? std::span<const std::byte>() : scales;
    w.scale = golden<float>("w.weight_scale_2.f32").front();
    w.input_scale = golden<float>("a.input_scale.f32").front();
    return w;
  }
};

TEST_P(Nvfp4Modes, GiveThePublishedProducts) {
  ThreadPool pool(1);
  const GoldenWeight golden_weight;
  const std::vector<float> a = golden<float>("a.f32");
  for (const ActivationMode mode : kModes) {
    const bool floats = mode == ActivationMode::kW4A16;
    const std::vector<double> expected = golden<double>(floats ? "y_w4a16.f64" : "y_w4a4.f64");
    const std::vector<float> rounded = floats ? a : golden<float>("a.serve.dequant.f32");
    for (const DType dtype : {DType::kNVFP4, DType::kNVFP4ModelOpt}) {
      SCOPED_TRACE(
          testing::Message() << activation_mode_name(mode) << ' ' << dtype_facts(dtype).name
      );
      cpu::CpuMatmul matmul(*GetParam(), pool, mode);
      const LogicalTensor tensor = golden_weight.tensor(dtype);
      const auto weight = matmul.prepare(Checkpoint(), tensor);
      const std::vector<float> y = multiply(matmul, *weight, a.data(), 4);
      for (int64_t i = 0; i < 32; ++i) {
        double magnitude = 0.0;
        for (int64_t k = 0; k < 64; ++k) {
          magnitude += std::fabs(
              oracle_weight(tensor, i % 8, k).value *
              static_cast<double>(rounded[static_cast<size_t>(i / 8 * 64 + k)])
          );
        }
        EXPECT_NEAR(
            static_cast<double>(y[static_cast<size_t>(i)]),
            expected[static_cast<size_t>(i)],
            kGoldenTolerance * magnitude
        ) << i;
      }
    }
  }
}

TEST_P(Nvfp4Modes, RowsDoNotSeeEachOtherNorThreads) {
  constexpr int64_t kOutputs = 331;
  constexpr int64_t kCols = 512;
  constexpr int64_t kRows = 75;
  const std::vector<float> x = random_values(kRows * kCols, 3, 1.0F);
  OwnedTensor owned = random_tensor("w", DType::kNVFP4, {kOutputs, kCols}, 10, 0.1F);
  owned.tensor.input_scale = 3.0F / kNvfp4InputRange;
  for (const ActivationMode mode : kModes) {
    SCOPED_TRACE(activation_mode_name(mode));
    std::vector<float> expected;
    for (int threads = 1; threads <= 3; ++threads) {
      ThreadPool pool(threads);
      cpu::CpuMatmul matmul(*GetParam(), pool, mode);
      const auto weight = matmul.prepare(Checkpoint(), owned.tensor);
      const std::vector<float> all = multiply(matmul, *weight, x.data(), kRows);
      expected = threads == 1 ? all : expected;
      ASSERT_EQ(all, expected) << threads << " threads";
      for (int64_t rows = 1; rows <= 37; rows += rows < 16 ? 1 : 21) {
        const int64_t first = rows % 3 * 11;
        const std::vector<float> y = multiply(matmul, *weight, x.data() + first * kCols, rows);
        ASSERT_TRUE(std::equal(y.begin(), y.end(), expected.begin() + first * kOutputs))
            << rows << " rows";
      }
    }
  }
}

TEST_P(Nvfp4Modes, WeightsOfOneCallKeepTheirOwnInputScales) {
  ThreadPool pool(2);
  cpu::CpuMatmul matmul(*GetParam(), pool, ActivationMode::kW4A4);
  OwnedTensor first = random_tensor("first", DType::kNVFP4, {40, 256}, 1, 0.1F);
  OwnedTensor second = random_tensor("second", DType::kNVFP4, {24, 256}, 2, 0.1F);
  const OwnedTensor floats = random_tensor("floats", DType::kBF16, {24, 256}, 3, 0.1F);
  first.tensor.input_scale = 1.0F / kNvfp4InputRange;
  second.tensor.input_scale = 4.0F / kNvfp4InputRange;
  std::vector<std::unique_ptr<Weight>> weights;
  for (const OwnedTensor* owned :
       {static_cast<const OwnedTensor*>(&first),
        static_cast<const OwnedTensor*>(&second),
        &floats}) {
    weights.push_back(matmul.prepare(Checkpoint(), owned->tensor));
  }
  const int64_t rows = 11;
  const std::vector<float> x = random_values(rows * 256, 4, 1.0F);
  std::vector<std::vector<float>> outs;
  std::vector<Product> products;
  for (const auto& weight : weights) {
    outs.emplace_back(static_cast<size_t>(rows * weight->rows));
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    products.push_back(
        {weights[i].get(), {outs[i].data(), rows, weights[i]->rows, weights[i]->rows}}
    );
  }
  matmul.matmul({x.data(), rows, 256, 256}, products);
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_EQ(outs[i], multiply(matmul, *weights[i], x.data(), rows)) << weights[i]->name;
  }
}

TEST_P(Nvfp4Modes, NanAndInfinityReachTheirOwnRowOnly) {
  ThreadPool pool(1);
  for (const ActivationMode mode : kModes) {
    cpu::CpuMatmul matmul(*GetParam(), pool, mode);
    OwnedTensor owned = random_tensor("w", DType::kNVFP4, {8, 256}, 6, 0.1F);
    owned.tensor.input_scale = 0.01F;
    const auto weight = matmul.prepare(Checkpoint(), owned.tensor);
    std::vector<float> x = random_values(int64_t{4} * 256, 8, 1.0F);
    x[256 + 100] = std::nanf("");
    x[2 * 256 + 100] = INFINITY;
    const std::vector<float> y = multiply(matmul, *weight, x.data(), 4);
    for (size_t o = 0; o < 8; ++o) {
      EXPECT_TRUE(std::isfinite(y[o]));
      EXPECT_TRUE(std::isnan(y[8 + o]));
      EXPECT_FALSE(std::isfinite(y[16 + o]));
      EXPECT_TRUE(std::isfinite(y[24 + o]));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    InstructionSets,
    Nvfp4Modes,
    testing::ValuesIn(cpu::runnable_tables()),
    [](const auto& table) { return std::string(table.param->name); }
);

TEST(Nvfp4ActivationRounding, GivesThePublishedCodesAndScales) {
  const std::vector<float> a = golden<float>("a.f32");
  const std::vector<uint8_t> codes = golden<uint8_t>("a.serve.codes.u8");
  const std::vector<uint8_t> scales = golden<uint8_t>("a.serve.scale.e4m3");
  const float input_scale = golden<float>("a.input_scale.f32").front();
  for (size_t block = 0; block < scales.size(); ++block) {
    const Nvfp4ActivationBlock rounded =
        round_nvfp4_activations(a.data() + 16 * block, input_scale);
    EXPECT_EQ(rounded.scale, e4m3_to_f32(scales[block])) << block;
    for (size_t i = 0; i < 16; ++i) {
      const uint8_t pair = codes[8 * block + i / 2];
      const uint8_t code = i % 2 == 0 ? pair & 15U : pair >> 4U;
      EXPECT_EQ(0.5F * static_cast<float>(rounded.doubled_codes[i]), kE2M1Values[code]) << i;
    }
  }
}

TEST(Nvfp4Auto, FollowsWhatTheFileSays) {
  ThreadPool pool(1);
  const GoldenWeight golden_weight;
  const LogicalTensor tensor = golden_weight.tensor(DType::kNVFP4ModelOpt);
  const std::vector<float> a = golden<float>("a.f32");
  const cpu::KernelTable& table = *cpu::runnable_tables().front();
  const auto product = [&](ActivationMode mode, const char* algorithm, bool input_scale) {
    cpu::CpuMatmul matmul(table, pool, mode);
    Checkpoint owner;
    if (algorithm != nullptr) {
      owner.metadata.set("general.quant_algo", std::string(algorithm));
    }
    LogicalTensor weight = tensor;
    weight.input_scale = input_scale ? tensor.input_scale : std::nullopt;
    return multiply(matmul, *matmul.prepare(owner, weight), a.data(), 4);
  };
  const auto fast = product(ActivationMode::kFast, "NVFP4", true);
  const auto w4a16 = product(ActivationMode::kW4A16, nullptr, false);
  const auto w4a4 = product(ActivationMode::kW4A4, nullptr, true);
  EXPECT_NE(fast, w4a16);
  EXPECT_NE(w4a16, w4a4);
  EXPECT_EQ(product(ActivationMode::kAuto, nullptr, true), fast);
  EXPECT_EQ(product(ActivationMode::kAuto, "W4A16_NVFP4", true), w4a16);
  EXPECT_EQ(product(ActivationMode::kAuto, "NVFP4", true), w4a4);
  EXPECT_EQ(product(ActivationMode::kAuto, "MIXED_PRECISION", true), w4a4);
  EXPECT_EQ(product(ActivationMode::kAuto, "MIXED_PRECISION", false), w4a16);
  try {
    product(ActivationMode::kAuto, "NVFP4", false);
    FAIL() << "accepted without an input scale";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("golden.weight"));
    EXPECT_THAT(error.what(), testing::HasSubstr("--activation w4a16"));
  }
}

}  // namespace
}  // namespace octet::test
