// GPTQ on random Hessians: the factor is one, rounding with it is never worse than plain rounding,
// and neither threads nor company change a code.

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "octet/quantize/gptq.h"
#include "octet/quantize/hessian.h"
#include "octet/tensor/encode.h"
#include "octet/tensor/logical_tensor.h"
#include "octet/tensor/types/float_formats.h"
#include "support/gptq_oracle.h"
#include "support/random_checkpoint.h"

namespace octet::test {
namespace {

/// Inputs whose columns are mixtures of a few directions, as those of networks are.
Matrix random_inputs(int64_t tokens, int64_t cols, RandomNumbers& random) {
  const int64_t directions = 1 + cols / 4;
  Matrix mix = zeros(static_cast<size_t>(directions), static_cast<size_t>(cols));
  for (std::vector<double>& row : mix) {
    for (double& value : row) {
      value = random.normal();
    }
  }
  Matrix x = zeros(static_cast<size_t>(tokens), static_cast<size_t>(cols));
  for (std::vector<double>& row : x) {
    for (const std::vector<double>& direction : mix) {
      const double amount = random.normal();
      for (size_t c = 0; c < row.size(); ++c) {
        row[c] += amount * direction[c];
      }
    }
    for (double& value : row) {
      value += 0.3 * random.normal();
    }
  }
  return x;
}

std::vector<double> flat(const Matrix& m) {
  std::vector<double> values;
  for (const std::vector<double>& row : m) {
    values.insert(values.end(), row.begin(), row.end());
  }
  return values;
}

struct Case {
  int64_t rows = 0;
  int64_t cols = 0;
  Matrix hessian;
  std::vector<float> weights;
  std::vector<char> dead;
};

Case random_case(uint64_t seed) {
  RandomNumbers random(seed);
  Case c;
  c.rows = random.integer(1, 40);
  c.cols = 16 * random.integer(1, 20);
  c.hessian = oracle_hessian(random_inputs(c.cols + 20, c.cols, random));
  c.weights = random_values(c.rows * c.cols, seed + 1000, 0.05F);
  c.dead.assign(static_cast<size_t>(c.cols), 0);
  if (seed % 3 == 0) {
    const int64_t column = random.integer(0, c.cols - 1);
    c.dead[static_cast<size_t>(column)] = 1;
    for (int64_t r = 0; r < c.rows; ++r) {
      c.weights[static_cast<size_t>(r * c.cols + column)] = 0.0F;
    }
  }
  for (float& w : c.weights) {
    w = bf16_to_f32(f32_to_bf16(w));
  }
  return c;
}

NVFP4ModelOptData plain(const Case& c) {
  return encode_nvfp4_modelopt(c.weights.data(), c.rows, c.cols);
}

Matrix decoded(const Case& c, const NVFP4ModelOptData& data, const std::vector<std::byte>& codes) {
  LogicalTensor tensor;
  tensor.dtype = DType::kNVFP4ModelOpt;
  tensor.shape = {c.rows, c.cols};
  tensor.data = codes;
  tensor.block_scales = data.block_scales;
  tensor.scale = data.scale;
  Matrix values;
  std::vector<float> row(static_cast<size_t>(c.cols));
  for (int64_t r = 0; r < c.rows; ++r) {
    decode_rows(tensor, r, 1, row.data());
    values.emplace_back(row.begin(), row.end());
  }
  return values;
}

std::vector<std::byte> gptq_codes(
    const Case& c, const NVFP4ModelOptData& data, const HessianFactor& factor, int threads
) {
  ThreadPool pool(threads);
  std::vector<std::byte> codes(data.codes.size());
  round_gptq({c.weights, data.block_scales, data.scale, c.rows, c.cols}, factor, codes, pool);
  return codes;
}

TEST(HessianFactor, TimesItsTransposeIsTheInverse) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Case c = random_case(seed);
    ThreadPool pool(1 + static_cast<int>(seed % 4));
    const HessianFactor factor(flat(c.hessian), c.dead, pool);
    ASSERT_FALSE(factor.is_identity());
    const Matrix damped = oracle_damped(c.hessian, c.dead);
    const auto n = static_cast<size_t>(c.cols);
    // U H U^T = I says the same as U^T U = H^-1.
    Matrix uh = zeros(n, n);
    for (size_t i = 0; i < n; ++i) {
      for (size_t k = i; k < n; ++k) {
        for (size_t j = 0; j < n; ++j) {
          uh[i][j] += factor.row(static_cast<int64_t>(i))[k] * damped[k][j];
        }
      }
    }
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        double sum = 0.0;
        for (size_t k = j; k < n; ++k) {
          sum += uh[i][k] * factor.row(static_cast<int64_t>(j))[k];
        }
        ASSERT_NEAR(sum, i == j ? 1.0 : 0.0, 1e-9) << i << ' ' << j;
      }
      ASSERT_GT(factor.row(static_cast<int64_t>(i))[i], 0.0);
    }
  }
}

TEST(HessianFactor, IsTheIdentityWhereNothingCanBeInverted) {
  ThreadPool pool(2);
  const std::vector<char> none(80, 0);
  std::vector<double> indefinite(80 * 80, 0.0);
  for (size_t i = 0; i < 80; ++i) {
    indefinite[i * 81] = i == 70 ? -5.0 : 1.0;
  }
  std::vector<double> broken(80 * 80, 1.0);
  broken[3] = std::nan("");
  for (const std::vector<double>& hessian :
       {indefinite, broken, std::vector<double>(80 * 80, 0.0)}) {
    const HessianFactor factor(hessian, none, pool);
    EXPECT_TRUE(factor.is_identity());
    EXPECT_EQ(factor.row(5)[5], 1.0);
    EXPECT_EQ(factor.row(5)[6], 0.0);
  }
}

TEST(Gptq, EqualsTheDefinition) {
  int wide = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Case c = random_case(seed);
    wide += c.cols > kGptqBlock ? 1 : 0;
    ThreadPool pool(2);
    const HessianFactor factor(flat(c.hessian), c.dead, pool);
    const auto n = static_cast<size_t>(c.cols);
    Matrix u = zeros(n, n);
    for (size_t i = 0; i < n; ++i) {
      for (size_t k = i; k < n; ++k) {
        u[i][k] = factor.row(static_cast<int64_t>(i))[k];
      }
    }
    const NVFP4ModelOptData data = plain(c);
    const std::vector<std::byte> codes = gptq_codes(c, data, factor, 2);
    for (int64_t r = 0; r < c.rows; ++r) {
      const float* row = c.weights.data() + r * c.cols;
      std::vector<float> scales;
      for (int64_t g = 0; g < c.cols / 16; ++g) {
        const bool zero =
            std::all_of(row + 16 * g, row + 16 * (g + 1), [](float w) { return w == 0.0F; });
        const auto scale =
            static_cast<uint8_t>(data.block_scales[static_cast<size_t>(r * (c.cols / 16) + g)]);
        scales.push_back(zero ? 0.0F : e4m3_to_f32(scale) * data.scale);
      }
      const std::vector<int> expected =
          oracle_gptq_row(std::vector<double>(row, row + c.cols), scales, u);
      for (int64_t i = 0; i < c.cols; ++i) {
        const auto pair = static_cast<uint8_t>(codes[static_cast<size_t>((r * c.cols + i) / 2)]);
        const int code = i % 2 == 0 ? pair & 15 : pair >> 4;
        ASSERT_EQ(code, expected[static_cast<size_t>(i)]) << "row " << r << " column " << i;
      }
    }
  }
  EXPECT_GE(wide, 10) << "the correction of later blocks must be met";
}

TEST(Gptq, IsNeverWorseThanPlainRounding) {
  int clearly_better = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Case c = random_case(seed);
    ThreadPool pool(2);
    const HessianFactor factor(flat(c.hessian), c.dead, pool);
    const NVFP4ModelOptData data = plain(c);
    Matrix weights;
    for (int64_t r = 0; r < c.rows; ++r) {
      weights.emplace_back(c.weights.begin() + r * c.cols, c.weights.begin() + (r + 1) * c.cols);
    }
    // The damped matrix is what the rounding minimises.
    const Matrix damped = oracle_damped(c.hessian, c.dead);
    const double before = quadratic(difference(weights, decoded(c, data, data.codes)), damped);
    const double after =
        quadratic(difference(weights, decoded(c, data, gptq_codes(c, data, factor, 2))), damped);
    // A handful of columns leaves little to choose from: then luck may decide.
    EXPECT_LE(after, before * (c.cols * c.rows >= 256 ? 1.0 : 1.3));
    clearly_better += after < 0.7 * before ? 1 : 0;
  }
  EXPECT_GE(clearly_better, 30);
}

TEST(Gptq, WithTheIdentityItIsPlainRounding) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Case c = random_case(seed);
    ThreadPool pool(1);
    const std::vector<double> nothing(static_cast<size_t>(c.cols * c.cols), 0.0);
    const HessianFactor factor(nothing, std::vector<char>(c.dead.size(), 0), pool);
    const NVFP4ModelOptData data = plain(c);
    EXPECT_TRUE(gptq_codes(c, data, factor, 1) == data.codes);
  }
}

TEST(Gptq, CodesDependNeitherOnThreadsNorOnCompany) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Case c = random_case(seed);
    ThreadPool one(1);
    ThreadPool three(3);
    const HessianFactor factor(flat(c.hessian), c.dead, one);
    const HessianFactor same(flat(c.hessian), c.dead, three);
    for (int64_t i = 0; i < c.cols; ++i) {
      ASSERT_TRUE(std::equal(factor.row(i) + i, factor.row(i) + c.cols, same.row(i) + i));
    }
    const NVFP4ModelOptData data = plain(c);
    const std::vector<std::byte> codes = gptq_codes(c, data, factor, 1);
    EXPECT_EQ(codes, gptq_codes(c, data, factor, 3));
    Case last = c;
    last.rows = 1;
    last.weights.assign(c.weights.end() - c.cols, c.weights.end());
    NVFP4ModelOptData of_last = data;
    of_last.block_scales.assign(data.block_scales.end() - c.cols / 16, data.block_scales.end());
    of_last.codes.resize(static_cast<size_t>(c.cols / 2));
    EXPECT_TRUE(std::equal(
        codes.end() - c.cols / 2, codes.end(), gptq_codes(last, of_last, factor, 1).begin()
    ));
  }
}

TEST(Hessian, IsTheMeanOfWhatBothPartsSaw) {
  const auto ops = make_cpu_ops({.threads = 2, .isa = ""});
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RandomNumbers random(seed);
    // The last is wider than the strips that products come in.
    const int64_t cols = seed == 5 ? 600 : random.integer(1, 90);
    const int64_t rows = random.integer(2, seed == 5 ? 300 : 700);
    const std::vector<float> x = random_values(rows * cols, seed, 1.0F);
    Hessian first(cols);
    Hessian second(cols);
    const int64_t cut = random.integer(1, rows - 1);
    first.add({x.data(), cut, cols, cols}, *ops);
    second.add({x.data() + cut * cols, rows - cut, cols, cols}, *ops);
    first.add(std::move(second), *ops);
    EXPECT_EQ(first.rows(), rows);
    Matrix inputs;
    for (int64_t r = 0; r < rows; ++r) {
      inputs.emplace_back(x.begin() + r * cols, x.begin() + (r + 1) * cols);
    }
    const Matrix expected = oracle_hessian(inputs);
    const std::vector<double> mean = first.take_mean(*ops);
    for (int64_t i = 0; i < cols; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        const double tolerance =
            1e-6 * std::sqrt(
                       expected[static_cast<size_t>(i)][static_cast<size_t>(i)] *
                       expected[static_cast<size_t>(j)][static_cast<size_t>(j)]
                   );
        ASSERT_NEAR(
            mean[static_cast<size_t>(i * cols + j)],
            expected[static_cast<size_t>(i)][static_cast<size_t>(j)],
            tolerance
        );
      }
    }
  }
}

}  // namespace
}  // namespace octet::test
