// Every weight type against bytes and values that ggml (and a reference of ModelOpt's NVFP4)
// computed: decoding must give the same bits, encoding the same bytes. See
// tests/golden/quant/README.md.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "octet/tensor/encode.h"
#include "octet/tensor/logical_tensor.h"
#include "octet/tensor/types/float_formats.h"

namespace octet {
namespace {

constexpr int64_t kRows = 6;
constexpr int64_t kCols = 1024;

template <typename T>
std::vector<T> read_array(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  EXPECT_FALSE(bytes.empty()) << path << " is missing or empty";
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

std::vector<std::byte> read_bytes(const std::string& path) {
  return read_array<std::byte>(path);
}

template <typename T>
void expect_equal(
    const std::vector<T>& actual, const std::vector<T>& expected, const std::string& what
) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  const auto actual_bytes = std::as_bytes(std::span(actual));
  const auto expected_bytes = std::as_bytes(std::span(expected));
  const auto position =
      std::mismatch(actual_bytes.begin(), actual_bytes.end(), expected_bytes.begin()).first;
  EXPECT_EQ(position, actual_bytes.end())
      << what << " differ first at index "
      << static_cast<size_t>(position - actual_bytes.begin()) / sizeof(T);
}

struct TypeCase {
  DType dtype;
  const char* file;
};

/// The compact copy is always there; the full set of values is tested where it is.
std::vector<std::string> golden_folders() {
  std::vector<std::string> folders{OCTET_SOURCE_DIR "/tests/golden/quant"};
  if (std::filesystem::exists(OCTET_SHARED_DIR "/golden/quant")) {
    folders.emplace_back(OCTET_SHARED_DIR "/golden/quant");
  }
  return folders;
}

class GgmlType : public testing::TestWithParam<TypeCase> {};

TEST_P(GgmlType, DecodesToTheSameBits) {
  for (const std::string& folder : golden_folders()) {
    int compared = 0;
    for (const char* importance : {"", ".im"}) {
      const std::string base = fmt::format("{}/ggml/{}{}", folder, GetParam().file, importance);
      if (!std::filesystem::exists(base + ".deq.f32")) {
        continue;
      }
      const std::vector<std::byte> encoded = read_bytes(base + ".q");
      LogicalTensor tensor;
      tensor.dtype = GetParam().dtype;
      tensor.shape = {kRows, kCols};
      tensor.data = encoded;
      ASSERT_EQ(encoded.size(), static_cast<size_t>(kRows * row_bytes(tensor.dtype, kCols)));
      std::vector<float> decoded(kRows * kCols);
      decode_rows(tensor, 0, kRows, decoded.data());
      expect_equal(decoded, read_array<float>(base + ".deq.f32"), base);
      ++compared;
    }
    EXPECT_GE(compared, 1) << folder;
  }
}

TEST_P(GgmlType, EncodesToTheSameBytes) {
  const std::string folder = OCTET_SOURCE_DIR "/tests/golden/quant/ggml/";
  const std::vector<float> x = read_array<float>(folder + "x.f32");
  const std::vector<float> importance = read_array<float>(folder + "imatrix.f32");
  ASSERT_EQ(x.size(), static_cast<size_t>(kRows * kCols));
  const DType dtype = GetParam().dtype;
  std::vector<std::byte> encoded(static_cast<size_t>(kRows * row_bytes(dtype, kCols)));
  const std::string plain = folder + GetParam().file + ".q";
  encode_rows(dtype, x.data(), kRows, kCols, nullptr, encoded.data());
  expect_equal(encoded, read_bytes(plain), plain);

  // Types that make no use of importance have no second file: their bytes must not change.
  const std::string weighted = folder + GetParam().file + ".im.q";
  const std::string expected = std::filesystem::exists(weighted) ? weighted : plain;
  encode_rows(dtype, x.data(), kRows, kCols, importance.data(), encoded.data());
  expect_equal(encoded, read_bytes(expected), expected);
}

INSTANTIATE_TEST_SUITE_P(
    AllTypes,
    GgmlType,
    testing::Values(
        TypeCase{DType::kF16, "f16"},
        TypeCase{DType::kBF16, "bf16"},
        TypeCase{DType::kQ8_0, "q8_0"},
        TypeCase{DType::kQ4_0, "q4_0"},
        TypeCase{DType::kQ4_1, "q4_1"},
        TypeCase{DType::kQ5_0, "q5_0"},
        TypeCase{DType::kQ5_1, "q5_1"},
        TypeCase{DType::kQ4K, "q4_k"},
        TypeCase{DType::kQ5K, "q5_k"},
        TypeCase{DType::kQ6K, "q6_k"},
        TypeCase{DType::kIQ4NL, "iq4_nl"},
        TypeCase{DType::kIQ4XS, "iq4_xs"},
        TypeCase{DType::kMXFP4, "mxfp4"},
        TypeCase{DType::kNVFP4, "nvfp4"}
    ),
    [](const testing::TestParamInfo<TypeCase>& type) { return std::string(type.param.file); }
);

/// The ModelOpt golden: weights 8 x 64.
class ModelOptNVFP4 : public testing::Test {
 protected:
  static constexpr int64_t kOut = 8;
  static constexpr int64_t kIn = 64;

  std::string folder_ = OCTET_SOURCE_DIR "/tests/golden/quant/nvfp4/";
  std::vector<float> weights_ = read_array<float>(folder_ + "w.f32");

  void expect_decodes(
      DType dtype,
      const std::vector<std::byte>& data,
      const std::vector<std::byte>& block_scales,
      const std::string& expected
  ) const {
    LogicalTensor tensor;
    tensor.dtype = dtype;
    tensor.shape = {kOut, kIn};
    tensor.data = data;
    tensor.block_scales = block_scales;
    tensor.scale = read_array<float>(folder_ + "w.weight_scale_2.f32").at(0);
    std::vector<float> decoded(kOut * kIn);
    decode_rows(tensor, 0, kOut, decoded.data());
    expect_equal(decoded, read_array<float>(folder_ + expected), expected);
  }
};

TEST_F(ModelOptNVFP4, DecodesThreeTensors) {
  const auto codes = read_bytes(folder_ + "w.weight.u8");
  const auto scales = read_bytes(folder_ + "w.weight_scale.e4m3");
  expect_decodes(DType::kNVFP4ModelOpt, codes, scales, "w.dequant.f32");
  const auto static_codes = read_bytes(folder_ + "w.static.weight.u8");
  const auto static_scales = read_bytes(folder_ + "w.static.weight_scale.e4m3");
  expect_decodes(DType::kNVFP4ModelOpt, static_codes, static_scales, "w.static.dequant.f32");
}

TEST_F(ModelOptNVFP4, GgmlRepackOfTheSameTensorDecodesToTheSameValues) {
  expect_decodes(DType::kNVFP4, read_bytes(folder_ + "w.ggml_nvfp4.q"), {}, "w.dequant.f32");
}

TEST_F(ModelOptNVFP4, EncodesWithScalesOfTheWeights) {
  const NVFP4ModelOptData data = encode_nvfp4_modelopt(weights_.data(), kOut, kIn);
  EXPECT_EQ(data.scale, 0x1p-10F);
  expect_equal(data.block_scales, read_bytes(folder_ + "w.weight_scale.e4m3"), "block scales");
  expect_equal(data.codes, read_bytes(folder_ + "w.weight.u8"), "codes");
}

TEST_F(ModelOptNVFP4, EncodesWithCalibratedScales) {
  const std::vector<float> block_amax = read_array<float>(folder_ + "w.block_amax_static.f32");
  NVFP4ModelOptOptions options;
  options.block_amax = block_amax;
  const NVFP4ModelOptData data = encode_nvfp4_modelopt(weights_.data(), kOut, kIn, options);
  expect_equal(
      data.block_scales, read_bytes(folder_ + "w.static.weight_scale.e4m3"), "block scales"
  );
  expect_equal(data.codes, read_bytes(folder_ + "w.static.weight.u8"), "codes");
}

/// The order in which servers quantize activations.
struct ServedBlock {
  uint8_t scale = 0;
  std::array<uint8_t, 8> codes{};
};

ServedBlock serve(const float* x, float input_scale) {
  ServedBlock block;
  float largest = 0.0F;
  for (int i = 0; i < 16; ++i) {
    largest = std::max(largest, std::abs(x[i]));
  }
  const float inverse_scale = 1.0F / input_scale;
  block.scale = f32_to_e4m3(inverse_scale * (largest * (1.0F / 6.0F)));
  const float scale = e4m3_to_f32(block.scale);
  const float factor = scale == 0.0F ? 0.0F : 1.0F / (scale * (1.0F / inverse_scale));
  for (size_t k = 0; k < block.codes.size(); ++k) {
    const int low = f32_to_e2m1(x[2 * k] * factor);
    const int high = f32_to_e2m1(x[2 * k + 1] * factor);
    block.codes[k] = static_cast<uint8_t>(low | (high << 4));
  }
  return block;
}

TEST_F(ModelOptNVFP4, ScalarConversionsReproduceServedActivations) {
  const std::vector<float> a = read_array<float>(folder_ + "a.f32");
  const float input_scale = read_array<float>(folder_ + "a.input_scale.f32").at(0);
  std::vector<uint8_t> scales;
  std::vector<uint8_t> codes;
  for (size_t first = 0; first < a.size(); first += 16) {
    const ServedBlock block = serve(a.data() + first, input_scale);
    scales.push_back(block.scale);
    codes.insert(codes.end(), block.codes.begin(), block.codes.end());
  }
  expect_equal(scales, read_array<uint8_t>(folder_ + "a.serve.scale.e4m3"), "scales");
  expect_equal(codes, read_array<uint8_t>(folder_ + "a.serve.codes.u8"), "codes");
}

TEST_F(ModelOptNVFP4, E4M3TableIsExact) {
  const std::vector<float> table = read_array<float>(folder_ + "e4m3_table.f32");
  ASSERT_EQ(table.size(), 256U);
  for (size_t code = 0; code < table.size(); ++code) {
    const float value = e4m3_to_f32(static_cast<uint8_t>(code));
    const bool same = std::isnan(table[code])
                          ? std::isnan(value)
                          : std::bit_cast<uint32_t>(value) == std::bit_cast<uint32_t>(table[code]);
    EXPECT_TRUE(same) << "code " << code << " decodes to " << value;
  }
}

}  // namespace
}  // namespace octet
