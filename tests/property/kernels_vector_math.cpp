// Elementary functions over the whole range of float32, against float64.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "octet/kernels/cpu/isa_table.h"
#include "support/vector_oracle.h"

namespace octet {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): test vocabulary

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Both signs of every magnitude: subnormals, all exponents, the neighbourhood of 1; infinities and
/// zeros included.
const std::vector<float>& whole_range() {
  static const std::vector<float> values = [] {
    std::vector<float> x = {0.0F, 1.0F, 0.625F, 88.72F, 103.9F, 1e-45F, kInfinity, 3.4e38F};
    for (uint32_t bits = 1; bits < 0x7F800000U; bits += 10007) {
      x.push_back(std::bit_cast<float>(bits));
    }
    for (uint32_t bits = 0x3D000000U; bits < 0x42F00000U; bits += 331) {  // 2^-5 to 120
      x.push_back(std::bit_cast<float>(bits));
    }
    const size_t half = x.size();
    for (size_t i = 0; i < half; ++i) {
      x.push_back(-x[i]);
    }
    return x;
  }();
  return values;
}

template <class F>
std::vector<float> apply(F f) {
  std::vector<float> x = whole_range();
  f(x.data(), static_cast<int64_t>(x.size()));
  return x;
}

TEST(VectorMath, ExponentialIsWithinTwoUlp) {
  for (const cpu::KernelTable* table : cpu::runnable_tables()) {
    const double bound = table->name == "portable" ? 3.0 : 2.0;
    const std::vector<float> y = apply(table->vector.exponential);
    double worst = 0.0;
    for (size_t i = 0; i < y.size(); ++i) {
      const float x = whole_range()[i];
      const double want = std::exp(static_cast<double>(x));
      if (want > std::numeric_limits<float>::max()) {
        // The largest finite result may round to infinity.
        ASSERT_TRUE(y[i] == kInfinity || want < 3.4028237e38) << table->name << " x " << x;
      } else {
        worst = std::max(worst, std::abs(y[i] - want) / ulp(want));
      }
    }
    EXPECT_LE(worst, bound) << table->name;
    EXPECT_GT(worst, 0.4) << table->name << ": a float32 function cannot be better than rounding";
  }
}

TEST(VectorMath, ExponentialKeepsNaN) {
  for (const cpu::KernelTable* table : cpu::runnable_tables()) {
    std::vector<float> x(21, kNaN);
    table->vector.exponential(x.data(), 21);
    for (const float y : x) {
      EXPECT_TRUE(std::isnan(y)) << table->name;
    }
  }
}

/// |error| <= absolute * |x| + relative ulp of the result, wherever the formula is finite.
template <class F, class Oracle>
void expect_gate(F kernel, Oracle oracle, const char* name) {
  std::vector<float> y = whole_range();
  const std::vector<float> ones(y.size(), 1.0F);
  kernel(y.data(), ones.data(), static_cast<int64_t>(y.size()));
  double worst = 0.0;
  for (size_t i = 0; i < y.size(); ++i) {
    const double x = whole_range()[i];
    const double want = oracle(x);
    if (std::isinf(x)) {
      EXPECT_TRUE(x > 0 ? y[i] == kInfinity : std::isnan(y[i])) << name << " " << x;
      continue;
    }
    const double error = std::abs(y[i] - want) - std::numeric_limits<float>::denorm_min();
    worst = std::max(worst, error / (std::abs(x) + 1e-300));
  }
  EXPECT_LE(worst, 2.4e-7) << name;  // 4 * 2^-24
  EXPECT_GT(worst, 1e-8) << name;
}

TEST(VectorMath, GeluErrsByAtMostFourRoundingsOfItsInput) {
  for (const cpu::KernelTable* table : cpu::runnable_tables()) {
    expect_gate(table->vector.gelu_mul, oracle_gelu, table->name.data());
  }
}

TEST(VectorMath, SiluErrsByAtMostFourRoundingsOfItsInput) {
  for (const cpu::KernelTable* table : cpu::runnable_tables()) {
    expect_gate(table->vector.silu_mul, oracle_silu, table->name.data());
  }
}

TEST(VectorMath, SoftcapIsWithinFiveUlpAndNeverExceedsTheCap) {
  for (const cpu::KernelTable* table : cpu::runnable_tables()) {
    for (const float cap : {1.0F, 30.0F}) {
      std::vector<float> y = whole_range();
      table->vector.softcap(y.data(), cap, static_cast<int64_t>(y.size()));
      double worst = 0.0;
      for (size_t i = 0; i < y.size(); ++i) {
        const double x = whole_range()[i];
        const double want = cap * std::tanh(x / cap);
        EXPECT_LE(std::abs(y[i]), cap);
        EXPECT_EQ(std::signbit(y[i]), std::signbit(whole_range()[i]));
        // x / cap rounds to a subnormal when x is tiny: that costs up to `cap` of the smallest
        // steps.
        const double error = std::abs(y[i] - want) - cap * std::numeric_limits<float>::denorm_min();
        worst = std::max(worst, error / ulp(want));
      }
      EXPECT_LE(worst, 5.0) << table->name << " cap " << cap;
      EXPECT_GT(worst, 0.4) << table->name << " cap " << cap;
      std::vector<float> nan(17, kNaN);
      table->vector.softcap(nan.data(), cap, 17);
      EXPECT_TRUE(std::isnan(nan[0]) && std::isnan(nan[16]));
    }
  }
}

TEST(VectorMath, SetsWithFusedMultiplyAddAgreeToTheBit) {
  const std::vector<const cpu::KernelTable*> tables = cpu::runnable_tables();
  const cpu::VectorKernels& first = tables.front()->vector;
  if (tables.size() < 3) {
    GTEST_SKIP() << "this CPU runs one set with fused multiply-add only";
  }
  const std::vector<float> ones(whole_range().size(), 1.0F);
  for (size_t i = 1; i + 1 < tables.size(); ++i) {  // the last is portable
    const cpu::VectorKernels& other = tables[i]->vector;
    const auto expect_same = [&](const std::vector<float>& a, const std::vector<float>& b) {
      for (size_t k = 0; k < a.size(); ++k) {
        if (!std::isnan(a[k]) || !std::isnan(b[k])) {
          ASSERT_EQ(std::bit_cast<uint32_t>(a[k]), std::bit_cast<uint32_t>(b[k]))
              << tables[i]->name << " x " << whole_range()[k];
        }
      }
    };
    expect_same(apply(first.exponential), apply(other.exponential));
    const auto gate = [&](auto kernel) {
      return apply([&](float* x, int64_t n) { kernel(x, ones.data(), n); });
    };
    expect_same(gate(first.gelu_mul), gate(other.gelu_mul));
    expect_same(gate(first.silu_mul), gate(other.silu_mul));
    const auto cap = [&](auto kernel) {
      return apply([&](float* x, int64_t n) { kernel(x, 30.0F, n); });
    };
    expect_same(cap(first.softcap), cap(other.softcap));
  }
}

TEST(VectorMath, Bf16RoundsToNearestEven) {
  std::vector<float> x = whole_range();
  for (uint32_t high = 0x3F00U; high < 0x3F10U; ++high) {  // ties and their neighbours
    for (const uint32_t low : {0x7FFFU, 0x8000U, 0x8001U}) {
      x.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  for (const cpu::KernelTable* table : cpu::runnable_tables()) {
    std::vector<uint16_t> y(x.size());
    table->vector.to_bf16(x.data(), y.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(y[i], oracle_bf16(x[i])) << table->name << " " << x[i];
    }
    for (const uint32_t bits : {0x7F800001U, 0xFFFFFFFFU, 0x7FC00000U}) {
      const auto nan = std::bit_cast<float>(bits);
      uint16_t rounded = 0;
      table->vector.to_bf16(&nan, &rounded, 1);
      EXPECT_TRUE(std::isnan(bf16_value(rounded))) << table->name;
    }
  }
}

}  // namespace
}  // namespace octet
