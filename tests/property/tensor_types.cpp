// Laws of the weight types over random data: decoding means what the layout tables say, encoding
// stays within the type's precision and is exact where it can be, rows are independent, and bad
// values are found.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/tensor/check_values.h"
#include "octet/tensor/encode.h"
#include "octet/tensor/type_list.h"
#include "support/random_checkpoint.h"
#include "support/weight_oracle.h"

namespace octet {
namespace {

using test::RandomNumbers;
using testing::AllOf;
using testing::HasSubstr;

std::vector<DType> all_dtypes() {
  std::vector<DType> dtypes(kDTypeCount);
  std::ranges::generate(dtypes, [next = 0]() mutable { return static_cast<DType>(next++); });
  return dtypes;
}

std::vector<float> decode(const LogicalTensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  decode_rows(tensor, 0, tensor.rows(), values.data());
  return values;
}

/// A tensor of random bytes and the bytes themselves.
struct RandomBytesTensor {
  LogicalTensor tensor;
  std::vector<std::byte> data;
  std::vector<std::byte> block_scales;
};

RandomBytesTensor random_bytes_tensor(DType dtype, int64_t rows, int64_t cols, uint64_t seed) {
  RandomNumbers random(seed);
  RandomBytesTensor result;
  const auto fill = [&](std::vector<std::byte>& bytes, int64_t count) {
    bytes.resize(static_cast<size_t>(count));
    std::ranges::generate(bytes, [&] { return static_cast<std::byte>(random.bits()); });
  };
  fill(result.data, rows * row_bytes(dtype, cols));
  if (dtype == DType::kNVFP4ModelOpt) {
    fill(result.block_scales, rows * cols / 16);
  }
  LogicalTensor& tensor = result.tensor;
  tensor.name = "random.weight";
  tensor.dtype = dtype;
  tensor.shape = {rows, cols};
  tensor.data = result.data;
  tensor.block_scales = result.block_scales;
  if (dtype == DType::kNVFP4 || dtype == DType::kNVFP4ModelOpt) {
    tensor.scale = 0.37F;
  }
  return result;
}

bool passes_check(const LogicalTensor& tensor) {
  try {
    check_values(tensor);
  } catch (const Error&) {
    return false;
  }
  return true;
}

class WeightType : public testing::TestWithParam<DType> {
 protected:
  static DType dtype() { return GetParam(); }
};

std::string name_of(const testing::TestParamInfo<DType>& type) {
  return std::string(dtype_facts(type.param).name);
}

INSTANTIATE_TEST_SUITE_P(AllTypes, WeightType, testing::ValuesIn(all_dtypes()), name_of);

/// Types whose rows say all about themselves. ModelOpt's have a global scale beside them, which has
/// room for any value, and its export knows no importance.
class SelfContainedType : public WeightType {};

std::vector<DType> self_contained_dtypes() {
  std::vector<DType> types = all_dtypes();
  std::erase(types, DType::kNVFP4ModelOpt);
  return types;
}

INSTANTIATE_TEST_SUITE_P(
    AllTypes, SelfContainedType, testing::ValuesIn(self_contained_dtypes()), name_of
);

/// Two roundings of products and one of a sum, each at most half a unit in the last place of the
/// terms; the smallest normal float bounds what is lost below it.
void expect_near_oracle(float actual, const test::OracleValue& expected, const std::string& where) {
  if (!std::isfinite(expected.value)) {
    ASSERT_FALSE(std::isfinite(actual)) << where;
    return;
  }
  if (expected.magnitude > static_cast<double>(std::numeric_limits<float>::max())) {
    return;  // float32 may overflow on the way
  }
  const double tolerance = 2e-7 * expected.magnitude + 1e-44;
  ASSERT_NEAR(static_cast<double>(actual), expected.value, tolerance) << where;
}

TEST_P(WeightType, DecodesWhatTheLayoutSays) {
  constexpr int64_t kRows = 5;
  constexpr int64_t kCols = 512;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const RandomBytesTensor random = random_bytes_tensor(dtype(), kRows, kCols, seed);
    const std::vector<float> decoded = decode(random.tensor);
    for (int64_t i = 0; i < kRows * kCols; ++i) {
      const auto expected = test::oracle_weight(random.tensor, i / kCols, i % kCols);
      const std::string where = fmt::format("seed {} element {}", seed, i);
      ASSERT_NO_FATAL_FAILURE(expect_near_oracle(decoded[static_cast<size_t>(i)], expected, where));
    }
  }
}

TEST_P(WeightType, RandomBytesDecodeToFiniteValuesOrAreFound) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const RandomBytesTensor random = random_bytes_tensor(dtype(), 1, 256, seed);
    const std::vector<float> decoded = decode(random.tensor);
    const bool finite = std::ranges::all_of(decoded, [](float x) { return std::isfinite(x); });
    ASSERT_TRUE(finite || !passes_check(random.tensor)) << "seed " << seed;
  }
}

TEST_P(WeightType, RowsDecodeAloneAsTogether) {
  const auto owned = test::random_tensor("w", dtype(), {7, 512}, 3, 0.02F);
  const std::vector<float> together = decode(owned.tensor);
  std::vector<float> alone(together.size());
  for (int64_t first = 0; first < 7; first += 2) {
    const int64_t count = std::min<int64_t>(2, 7 - first);
    decode_rows(owned.tensor, first, count, alone.data() + first * 512);
  }
  EXPECT_EQ(alone, together);
}

TEST_P(SelfContainedType, RowsEncodeAloneAsTogether) {
  const std::vector<float> values = test::random_values(1024, 8, 0.5F);
  const std::vector<float> importance = test::random_values(256, 9, 0.1F);
  std::vector<float> positive(importance);
  std::ranges::transform(positive, positive.begin(), [](float x) { return std::fabs(x); });
  const int64_t stride = row_bytes(dtype(), 256);
  std::vector<std::byte> together(static_cast<size_t>(4 * stride));
  std::vector<std::byte> alone(together.size());
  encode_rows(dtype(), values.data(), 4, 256, positive.data(), together.data());
  for (int64_t r = 0; r < 4; ++r) {
    encode_rows(
        dtype(), values.data() + 256 * r, 1, 256, positive.data(), alone.data() + r * stride
    );
  }
  EXPECT_EQ(alone, together);
}

TEST_P(WeightType, EncodedWeightsPassTheCheck) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const auto owned = test::random_tensor("w", dtype(), {3, 512}, seed, 0.02F);
    EXPECT_NO_THROW(check_values(owned.tensor)) << "seed " << seed;
  }
}

TEST_P(SelfContainedType, ColumnsThatMatterNothingGiveNumbers) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    RandomNumbers random(seed);
    const std::vector<float> values = test::random_values(2 * 512, seed, 0.5F);
    std::vector<float> importance(512);
    for (float& weight : importance) {
      weight = static_cast<float>(random.uniform());
    }
    const int64_t first = 16 * random.integer(0, 30);
    const int64_t count = random.integer(0, 1) == 0 ? 512 - first : 16 * random.integer(1, 2);
    std::fill_n(importance.begin() + first, count, 0.0F);
    std::vector<std::byte> data(static_cast<size_t>(2 * row_bytes(dtype(), 512)));
    encode_rows(dtype(), values.data(), 2, 512, importance.data(), data.data());
    LogicalTensor tensor;
    tensor.name = "w";
    tensor.dtype = dtype();
    tensor.shape = {2, 512};
    tensor.data = data;
    EXPECT_NO_THROW(check_values(tensor)) << "seed " << seed;
    for (const float value : decode(tensor)) {
      ASSERT_TRUE(std::isfinite(value) && std::fabs(value) < 10.0F) << value << " seed " << seed;
    }
  }
}

TEST_P(SelfContainedType, WhatIsTooLargeIsRefused) {
  const std::vector<float> ones(256, 1.0F);
  for (const bool weighed : {false, true}) {
    int refused = 0;
    for (const float large : {1e3F, 1e6F, 3e7F, 1e12F, 1e20F, 1e30F, 3.4e38F}) {
      SCOPED_TRACE(fmt::format("{} {}", large, weighed));
      std::vector<float> values = test::random_values(256, 3, 0.5F);
      values[100] = large;
      std::vector<std::byte> data(static_cast<size_t>(row_bytes(dtype(), 256)));
      LogicalTensor tensor;
      tensor.dtype = dtype();
      tensor.shape = {1, 256};
      tensor.data = data;
      try {
        encode_rows(dtype(), values.data(), 1, 256, weighed ? ones.data() : nullptr, data.data());
      } catch (const Error& error) {
        ++refused;
        EXPECT_THAT(error.what(), HasSubstr("too large for"));
        continue;
      }
      EXPECT_EQ(refused, 0) << "smaller values were refused";
      EXPECT_NO_THROW(check_values(tensor));
      if (dtype() != DType::kNVFP4) {  // whose scales end at 448, as its reference rounds them
        EXPECT_NEAR(decode(tensor)[100], large, 0.3F * large);
      }
    }
    const bool any_size = dtype() == DType::kF32 || dtype() == DType::kMXFP4;
    EXPECT_EQ(refused == 0, any_size);
  }
}

TEST_P(WeightType, ZeroStaysZero) {
  const auto owned = test::encoded_tensor("w", dtype(), {2, 256}, std::vector<float>(512, 0.0F));
  EXPECT_EQ(decode(owned.tensor), std::vector<float>(512, 0.0F));
  const bool scale_is_zero = dtype() == DType::kNVFP4ModelOpt;  // amax / 2688
  EXPECT_EQ(passes_check(owned.tensor), !scale_is_zero);
}

/// Any float32 input is encoded without undefined behaviour: sanitizers watch.
TEST_P(WeightType, EncodesExtremeValues) {
  RandomNumbers random(4);
  int encoded = 0;
  for (int round = 0; round < 50; ++round) {
    std::vector<float> values(256);
    const int exponent_range = round < 25 ? 127 : 8;
    const auto centre = static_cast<int>(random.integer(-149, 120));
    for (float& x : values) {
      const auto exponent = static_cast<int>(random.integer(-exponent_range, exponent_range));
      x = std::ldexp(static_cast<float>(random.normal()), std::clamp(centre + exponent, -149, 124));
    }
    try {
      const auto owned = test::encoded_tensor("w", dtype(), {1, 256}, values);
      EXPECT_NO_THROW(check_values(owned.tensor));
      ++encoded;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("too large for"));
    }
  }
  EXPECT_GT(encoded, 10);
}

TEST_P(WeightType, RefusesValuesThatAreNotFinite) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    std::vector<float> values(256, 1.0F);
    values[77] = bad;
    try {
      static_cast<void>(test::encoded_tensor("w", dtype(), {1, 256}, values));
      ADD_FAILURE() << "encoded " << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      EXPECT_THAT(error.what(), HasSubstr("77"));
    }
  }
}

/// Root mean square error over that of the values.
double relative_error(const std::vector<float>& values, const std::vector<float>& decoded) {
  double error = 0.0;
  double total = 0.0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(values[i]);
    error += std::pow(static_cast<double>(decoded[i]) - x, 2);
    total += x * x;
  }
  return std::sqrt(error / total);
}

/// Largest relative error of normally distributed weights; what a type of so many bits must reach.
double precision_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 0.0;
    case DType::kF16:
      return 0.0003;
    case DType::kBF16:
      return 0.002;
    case DType::kQ8_0:
      return 0.006;
    case DType::kQ6K:
      return 0.02;
    case DType::kQ5_0:
    case DType::kQ5_1:
    case DType::kQ5K:
      return 0.045;
    default:
      return 0.12;
  }
}

TEST_P(WeightType, EncodingLosesNoMoreThanTheTypeMust) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const std::vector<float> values = test::random_values(8192, seed, 0.02F);
    const auto owned = test::encoded_tensor("w", dtype(), {16, 512}, values);
    EXPECT_LE(relative_error(values, decode(owned.tensor)), precision_of(dtype()))
        << "seed " << seed;
  }
}

TEST_P(SelfContainedType, ImportanceLowersTheWeightedError) {
  constexpr int64_t kRows = 32;
  constexpr int64_t kCols = 512;
  const std::vector<float> values = test::random_values(kRows * kCols, 21, 0.02F);
  RandomNumbers random(22);
  std::vector<float> importance(kCols);
  std::ranges::generate(importance, [&] {
    return static_cast<float>(50.0 * std::pow(random.uniform(), 4) + 1e-4);
  });
  std::vector<std::byte> data(static_cast<size_t>(kRows * row_bytes(dtype(), kCols)));
  LogicalTensor tensor;
  tensor.dtype = dtype();
  tensor.shape = {kRows, kCols};
  tensor.data = data;
  const auto weighted_error = [&](const float* used) {
    encode_rows(dtype(), values.data(), kRows, kCols, used, data.data());
    const std::vector<float> decoded = decode(tensor);
    double error = 0.0;
    for (size_t i = 0; i < values.size(); ++i) {
      const double difference = static_cast<double>(decoded[i]) - static_cast<double>(values[i]);
      error += static_cast<double>(importance[i % kCols]) * difference * difference;
    }
    return error;
  };
  const double plain = weighted_error(nullptr);
  const double weighted = weighted_error(importance.data());
  const std::array<DType, 9> searching = {
      DType::kQ4_0,
      DType::kQ4_1,
      DType::kQ5_0,
      DType::kQ5_1,
      DType::kQ4K,
      DType::kQ5K,
      DType::kQ6K,
      DType::kIQ4NL,
      DType::kIQ4XS};
  if (std::ranges::find(searching, dtype()) != searching.end()) {
    EXPECT_LT(weighted, 0.97 * plain);
  } else {
    EXPECT_EQ(weighted, plain);
  }
}

/// Data that a type can represent, made so that its encoder must find the same bytes again: random
/// codes, a scale of few bits, and the codes that fix the scale present.
std::vector<std::byte> representable_block(DType dtype, RandomNumbers& random) {
  const DTypeFacts& facts = dtype_facts(dtype);
  std::vector<std::byte> block(static_cast<size_t>(facts.block_bytes));
  std::ranges::generate(block, [&] { return static_cast<std::byte>(random.bits()); });
  const auto scale = static_cast<float>(random.integer(1, 63)) * 0x1p-9F;
  switch (dtype) {
    case DType::kQ8_0:
      types::store_f16(block.data(), scale);
      std::ranges::replace(block.begin() + 2, block.end(), std::byte{0x80}, std::byte{3});
      block[2 + static_cast<size_t>(random.integer(0, 31))] = std::byte{127};
      break;
    case DType::kQ4_0:
      types::store_f16(block.data(), scale);
      block[2] &= std::byte{0xF0};  // -8
      break;
    case DType::kQ5_0:
      types::store_f16(block.data(), scale);
      block[2] &= std::byte{0xFE};
      block[6] &= std::byte{0xF0};  // -16
      break;
    case DType::kQ4_1:
    case DType::kQ5_1: {
      types::store_f16(block.data(), scale);
      types::store_f16(block.data() + 2, static_cast<float>(random.integer(-99, 99)) * 0x1p-9F);
      const size_t codes = dtype == DType::kQ4_1 ? 4 : 8;
      block[codes] = std::byte{0xF0};  // element 0 is the smallest, element 16 the largest
      if (dtype == DType::kQ5_1) {
        block[4] &= std::byte{0xFE};
        block[6] |= std::byte{0x01};
      }
      break;
    }
    case DType::kMXFP4:
      block[0] = static_cast<std::byte>(random.integer(100, 140));
      std::ranges::transform(block.begin() + 1, block.end(), block.begin() + 1, [](std::byte b) {
        return b & std::byte{0x77};  // the encoder never writes negative zero
      });
      block[1] = std::byte{0xF6};
      break;
    default:  // plain numbers: clear an exponent bit, so that none is infinite or NaN
      block.back() &= std::byte{0xBF};
  }
  return block;
}

TEST(WeightTypes, RepresentableDataSurviveARoundTrip) {
  for (const DType dtype :
       {DType::kF32,
        DType::kF16,
        DType::kBF16,
        DType::kQ8_0,
        DType::kQ4_0,
        DType::kQ4_1,
        DType::kQ5_0,
        DType::kQ5_1,
        DType::kMXFP4}) {
    RandomNumbers random(31);
    for (int round = 0; round < 500; ++round) {
      const std::vector<std::byte> block = representable_block(dtype, random);
      const DTypeFacts& facts = dtype_facts(dtype);
      LogicalTensor tensor;
      tensor.dtype = dtype;
      tensor.shape = {facts.block_values};
      tensor.data = block;
      const std::vector<float> values = decode(tensor);
      std::vector<std::byte> again(block.size());
      encode_rows(dtype, values.data(), 1, facts.block_values, nullptr, again.data());
      ASSERT_EQ(again, block) << facts.name << " round " << round;
    }
  }
}

TEST(WeightTypes, ModelOptDataSurviveARoundTrip) {
  RandomNumbers random(32);
  for (int round = 0; round < 200; ++round) {
    constexpr int64_t kBlocks = 8;
    std::vector<std::byte> codes(8 * kBlocks);
    std::vector<std::byte> scales(kBlocks);
    for (size_t b = 0; b < kBlocks; ++b) {
      scales[b] = static_cast<std::byte>(b == 0 ? 0x7E : random.integer(1, 0x7E));
      for (size_t k = 0; k < 8; ++k) {
        codes[8 * b + k] = static_cast<std::byte>(random.bits() & 0x77U);
      }
      codes[8 * b] = std::byte{0xF1};  // -6 fixes the block's scale
    }
    LogicalTensor tensor;
    tensor.dtype = DType::kNVFP4ModelOpt;
    tensor.shape = {2, 8 * kBlocks};
    tensor.data = codes;
    tensor.block_scales = scales;
    tensor.scale = std::ldexp(1.0F, static_cast<int>(random.integer(-20, 0)));
    const NVFP4ModelOptData again = encode_nvfp4_modelopt(decode(tensor).data(), 2, 8 * kBlocks);
    ASSERT_EQ(again.scale, tensor.scale) << "round " << round;
    ASSERT_EQ(again.block_scales, scales) << "round " << round;
    ASSERT_EQ(again.codes, codes) << "round " << round;
  }
}

TEST(CheckValues, NamesTheTensorAndItsFirstBadBlock) {
  auto random = random_bytes_tensor(DType::kQ8_0, 4, 128, 1);
  for (size_t b = 0; b < 16; ++b) {
    types::store_f16(random.data.data() + 34 * b, 0.5F);
  }
  EXPECT_NO_THROW(check_values(random.tensor));
  types::store_u16(random.data.data() + std::ptrdiff_t{34} * 15, 0x7E00);  // NaN
  types::store_u16(random.data.data() + std::ptrdiff_t{34} * 9, 0xFC00);   // -infinity
  try {
    check_values(random.tensor);
    FAIL() << "not found";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMalformed);
    EXPECT_THAT(
        error.what(),
        AllOf(HasSubstr("'random.weight'"), HasSubstr("row 2, columns 32 to 63"), HasSubstr("Q8_0"))
    );
  }
}

TEST(CheckValues, FindsEachTypesMeaninglessScales) {
  auto mxfp4 = random_bytes_tensor(DType::kMXFP4, 1, 32, 1);
  std::ranges::fill(mxfp4.data, std::byte{0x11});  // 0.5
  mxfp4.data[0] = std::byte{254};
  EXPECT_TRUE(passes_check(mxfp4.tensor));
  mxfp4.data[3] = std::byte{0x41};  // 2 * 2^127 is beyond float32
  EXPECT_FALSE(passes_check(mxfp4.tensor));
  mxfp4.data[3] = std::byte{0x11};
  mxfp4.data[0] = std::byte{255};
  EXPECT_FALSE(passes_check(mxfp4.tensor));

  auto modelopt = random_bytes_tensor(DType::kNVFP4ModelOpt, 1, 32, 1);
  modelopt.block_scales = {std::byte{0x01}, std::byte{0x7E}};
  modelopt.tensor.block_scales = modelopt.block_scales;
  EXPECT_TRUE(passes_check(modelopt.tensor));
  for (const std::byte bad : {std::byte{0x7F}, std::byte{0xFF}, std::byte{0x81}}) {
    modelopt.block_scales[1] = bad;
    EXPECT_FALSE(passes_check(modelopt.tensor));
  }
}

TEST(CheckValues, GlobalAndInputScalesMustBePositive) {
  auto owned = test::random_tensor("w", DType::kNVFP4, {1, 64}, 1, 1.0F);
  for (const float bad : {0.0F, -1.0F, std::nanf(""), std::numeric_limits<float>::infinity()}) {
    LogicalTensor tensor = owned.tensor;
    tensor.scale = bad;
    EXPECT_FALSE(passes_check(tensor)) << bad;
    tensor.scale = 1.0F;
    tensor.input_scale = bad;
    EXPECT_FALSE(passes_check(tensor)) << bad;
  }
}

/// The reference's own rounding of ggml NVFP4 scales.
TEST(NVFP4, ScaleRoundingHasTheQuirksOfTheReference) {
  using types::NVFP4;
  EXPECT_EQ(NVFP4::encode_scale(0.0F), 0);
  EXPECT_EQ(NVFP4::encode_scale(-1.0F), 0);
  EXPECT_EQ(NVFP4::encode_scale(0x1p-10F), 1);  // half a step: up
  EXPECT_EQ(NVFP4::encode_scale(0.0009F), 0);
  EXPECT_EQ(NVFP4::encode_scale(0.0155F), 7);  // nearest would be 8
  EXPECT_EQ(NVFP4::encode_scale(0x1p-6F), 8);
  EXPECT_EQ(NVFP4::encode_scale(1.0625F), 0x39);  // halfway: up, not to even
  EXPECT_EQ(NVFP4::encode_scale(247.9F), 0x77);
  EXPECT_EQ(NVFP4::encode_scale(248.0F), 0x7E);
  EXPECT_EQ(NVFP4::encode_scale(1e9F), 0x7E);
}

/// log2 in float32 rounds up just below a large power of two.
TEST(MXFP4, ExponentHasTheQuirkOfTheReference) {
  const auto exponent_of = [](float largest) {
    std::vector<float> values(32, 0.0F);
    values[5] = -largest;
    std::array<std::byte, 17> block{};
    encode_rows(DType::kMXFP4, values.data(), 1, 32, nullptr, block.data());
    return static_cast<int>(block[0]);
  };
  EXPECT_EQ(exponent_of(8.0F), 128);
  EXPECT_EQ(exponent_of(7.9999995F), 128);
  EXPECT_EQ(exponent_of(7.9F), 127);
  EXPECT_EQ(exponent_of(0.99999994F), 124);
  EXPECT_EQ(exponent_of(0.0F), 0);
  EXPECT_EQ(exponent_of(0x1p-140F), 0);
}

}  // namespace
}  // namespace octet
