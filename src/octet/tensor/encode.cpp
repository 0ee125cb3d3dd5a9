#include "octet/tensor/encode.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/base/error.h"
#include "octet/tensor/type_list.h"

namespace octet {

namespace {

constexpr float kLargestE2M1 = 6.0F;
constexpr float kLargestE4M3 = 448.0F;

/// Far above what any scale of 16 bits can hold (Q6_K: 65504 * 128 * 32): blocks are checked after
/// encoding, and this keeps the sums of a search from overflowing before.
constexpr float kLargestInScaledBlocks = 0x1p28F;

/// Whether blocks of the type have scales of limited range. MXFP4 has all powers of two.
constexpr bool has_narrow_scales(DTypeFacts facts, DType dtype) {
  return facts.block_values > 1 && dtype != DType::kMXFP4;
}

[[noreturn]] void too_large(DType dtype, int64_t first, int64_t count) {
  throw Error(
      ErrorKind::kInvalidArgument,
      fmt::format(
          "values {} to {} of the row are too large for {}; choose another type",
          first,
          first + count - 1,
          dtype_facts(dtype).name
      )
  );
}

template <typename Type>
void encode_row(const float* values, int64_t cols, const float* importance, std::byte* out) {
  constexpr DTypeFacts kFacts = Type::kFacts;
  types::EncodeContext context;
  if (importance != nullptr) {
    context.row_mean_square =
        sum_of_squares({values, static_cast<size_t>(cols)}) / static_cast<float>(cols);
  }
  const int64_t blocks = cols / kFacts.block_values;
  constexpr float kLimit = has_narrow_scales(kFacts, Type::kDType)
                               ? kLargestInScaledBlocks
                               : std::numeric_limits<float>::max();
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t first = b * kFacts.block_values;
    const std::span<const float> members(values + first, kFacts.block_values);
    std::byte* block = out + b * kFacts.block_bytes;
    context.importance = importance == nullptr ? nullptr : importance + first;
    if (std::fabs(largest_magnitude(members)) <= kLimit) {
      Type::encode(members.data(), context, block);
      if (Type::is_valid(block)) {
        continue;
      }
    }
    too_large(Type::kDType, first, kFacts.block_values);
  }
}

using EncodeRow = void (*)(const float*, int64_t, const float*, std::byte*);
constexpr auto kEncodeRow = WeightTypes::table<EncodeRow>([]<typename Type>() -> EncodeRow {
  if constexpr (Type::kDType == DType::kNVFP4ModelOpt) {
    return nullptr;
  } else {
    return &encode_row<Type>;
  }
});

void require_finite(const float* values, int64_t count, std::string_view what) {
  const auto* bad = std::find_if(values, values + count, [](float x) { return !std::isfinite(x); });
  if (bad != values + count) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "{} {} of the matrix to encode is {}, expected a finite number",
            what,
            bad - values,
            *bad
        )
    );
  }
}

/// The two paths of the exporter differ in the order of the divisions and for all-zero blocks.
float modelopt_block_scale(float block_amax, float amax, bool calibrated) {
  const float global_scale = amax / (kLargestE2M1 * kLargestE4M3);
  float scale = 0.0F;
  if (calibrated) {
    const float unit = block_amax / kLargestE2M1;
    scale = (unit == 0.0F ? 1.0F : unit) * kLargestE4M3 / (amax / kLargestE2M1);
  } else {
    scale = block_amax / (kLargestE2M1 * global_scale);
    scale = scale == 0.0F ? 1.0F : scale;
  }
  return std::clamp(scale, 0x1p-9F, kLargestE4M3);
}

}  // namespace

void encode_rows(
    DType dtype,
    const float* values,
    int64_t rows,
    int64_t cols,
    const float* importance,
    std::byte* out
) {
  const EncodeRow encode = kEncodeRow[static_cast<size_t>(dtype)];
  OCTET_CHECK(encode != nullptr);
  require_finite(values, rows * cols, "value");
  if (importance != nullptr) {
    require_finite(importance, cols, "importance");
  }
  const int64_t stride_bytes = row_bytes(dtype, cols);
  for (int64_t r = 0; r < rows; ++r) {
    encode(values + r * cols, cols, importance, out + r * stride_bytes);
  }
}

NVFP4ModelOptData encode_nvfp4_modelopt(
    const float* values, int64_t rows, int64_t cols, const NVFP4ModelOptOptions& options
) {
  using Type = types::NVFP4ModelOpt;
  constexpr int64_t kBlockValues = Type::kFacts.block_values;
  const int64_t blocks = rows * (cols / kBlockValues);
  OCTET_CHECK(cols % kBlockValues == 0);
  OCTET_CHECK(
      options.block_amax.empty() || static_cast<int64_t>(options.block_amax.size()) == blocks
  );
  require_finite(values, rows * cols, "value");
  std::vector<float> exported(values, values + rows * cols);
  for (float& x : exported) {
    x = bf16_to_f32(f32_to_bf16(x));
  }
  const float amax = options.amax != 0.0F ? options.amax : std::fabs(largest_magnitude(exported));

  NVFP4ModelOptData result;
  result.scale = amax / (kLargestE2M1 * kLargestE4M3);
  result.codes.resize(static_cast<size_t>(blocks * Type::kFacts.block_bytes));
  result.block_scales.resize(static_cast<size_t>(blocks));
  for (int64_t b = 0; b < blocks; ++b) {
    const float* block = exported.data() + b * kBlockValues;
    const bool calibrated = !options.block_amax.empty();
    const float block_amax = calibrated ? options.block_amax[static_cast<size_t>(b)]
                                        : std::fabs(largest_magnitude({block, kBlockValues}));
    const float ideal = amax == 0.0F ? 1.0F : modelopt_block_scale(block_amax, amax, calibrated);
    const auto scale = static_cast<std::byte>(f32_to_e4m3(ideal));
    result.block_scales[static_cast<size_t>(b)] = scale;
    Type::encode(block, scale, result.scale, result.codes.data() + b * Type::kFacts.block_bytes);
  }
  return result;
}

}  // namespace octet
