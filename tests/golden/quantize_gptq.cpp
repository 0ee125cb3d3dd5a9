// GPTQ against values that a separate float64 reference computed: the Hessian, its factor, every
// rounded weight, and the loss. See tests/golden/quant/README.md.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/quantize/gptq.h"
#include "octet/quantize/hessian.h"
#include "octet/tensor/encode.h"
#include "octet/tensor/logical_tensor.h"
#include "support/golden_files.h"
#include "support/gptq_oracle.h"

namespace octet::test {
namespace {

constexpr int64_t kRows = 8;
constexpr int64_t kCols = 64;
constexpr int64_t kTokens = 256;
const std::string kGolden = OCTET_SOURCE_DIR "/tests/golden/quant/gptq/";

template <typename T>
std::vector<T> golden(const std::string& name) {
  const std::vector<char> bytes = read_bytes(kGolden + name);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

template <typename T>
Matrix matrix(const std::vector<T>& values) {
  Matrix m;
  for (size_t first = 0; first < values.size(); first += kCols) {
    m.emplace_back(
        values.begin() + static_cast<std::ptrdiff_t>(first),
        values.begin() + static_cast<std::ptrdiff_t>(first + kCols)
    );
  }
  return m;
}

std::vector<char> dead_columns(const std::vector<float>& w) {
  std::vector<char> dead(kCols, 1);
  for (size_t i = 0; i < w.size(); ++i) {
    dead[i % kCols] = w[i] != 0.0F ? 0 : dead[i % kCols];
  }
  return dead;
}

TEST(GoldenGptq, HessianOfTheInputs) {
  const std::vector<float> x = golden<float>("x.f32");
  const auto ops = make_cpu_ops({.threads = 2, .isa = ""});
  Hessian hessian(kCols);
  hessian.add({x.data(), 100, kCols, kCols}, *ops);
  hessian.add({x.data() + 100 * kCols, kTokens - 100, kCols, kCols}, *ops);
  const std::vector<double> mean = hessian.take_mean(*ops);
  const std::vector<double> expected = golden<double>("h.f64");
  const double largest = *std::max_element(expected.begin(), expected.end());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(mean[i], expected[i], 1e-6 * largest) << i;
  }
}

TEST(GoldenGptq, FactorOfTheInverse) {
  const std::vector<double> expected = golden<double>("u.f64");
  const std::vector<char> dead = dead_columns(golden<float>("w.f32"));
  EXPECT_EQ(dead[17], 1);
  ThreadPool pool(2);
  const HessianFactor factor(golden<double>("h.f64"), dead, pool);
  ASSERT_FALSE(factor.is_identity());
  for (int64_t i = 0; i < kCols; ++i) {
    for (int64_t j = i; j < kCols; ++j) {
      const double u = expected[static_cast<size_t>(i * kCols + j)];
      ASSERT_NEAR(factor.row(i)[j], u, 1e-8 * (std::fabs(u) + 1e-6)) << i << ' ' << j;
    }
  }
}

TEST(GoldenGptq, EveryWeightAndTheLoss) {
  const std::vector<float> w = golden<float>("w.f32");
  const std::vector<float> block_amax = golden<float>("block_amax.f32");
  const float amax = *std::max_element(block_amax.begin(), block_amax.end());
  NVFP4ModelOptData data =
      encode_nvfp4_modelopt(w.data(), kRows, kCols, {.amax = amax, .block_amax = block_amax});
  ThreadPool pool(2);
  const HessianFactor factor(golden<double>("h.f64"), dead_columns(w), pool);
  const auto decoded = [&] {
    LogicalTensor tensor;
    tensor.dtype = DType::kNVFP4ModelOpt;
    tensor.shape = {kRows, kCols};
    tensor.data = data.codes;
    tensor.block_scales = data.block_scales;
    tensor.scale = data.scale;
    std::vector<float> values(w.size());
    decode_rows(tensor, 0, kRows, values.data());
    return values;
  };
  EXPECT_EQ(decoded(), golden<float>("rtn.f32"));
  round_gptq({w, data.block_scales, data.scale, kRows, kCols}, factor, data.codes, pool);
  EXPECT_EQ(decoded(), golden<float>("q.f32"));

  const Matrix h = matrix(golden<double>("h.f64"));
  const double total = quadratic(matrix(w), h);
  const auto loss = [&](const std::vector<float>& q) {
    return quadratic(difference(matrix(w), matrix(q)), h) / total;
  };
  EXPECT_NEAR(loss(decoded()), 1.773e-3, 0.001e-3);
  EXPECT_NEAR(loss(golden<float>("rtn.f32")), 8.425e-3, 0.001e-3);
}

}  // namespace
}  // namespace octet::test
