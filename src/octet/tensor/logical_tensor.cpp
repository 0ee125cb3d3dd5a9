#include "octet/tensor/logical_tensor.h"

#include "octet/base/check.h"
#include "octet/tensor/type_list.h"

namespace octet {

namespace {

template <typename Type>
void decode_row_as(const EncodedRow& row, int64_t cols, float* out) {
  constexpr DTypeFacts kFacts = Type::kFacts;
  const int64_t blocks = cols / kFacts.block_values;
  for (int64_t b = 0; b < blocks; ++b) {
    const std::byte* block = row.data + b * kFacts.block_bytes;
    if constexpr (Type::kDType == DType::kNVFP4ModelOpt) {
      Type::decode(block, row.block_scales[b], row.scale, out + b * kFacts.block_values);
    } else {
      Type::decode(block, out + b * kFacts.block_values);
    }
  }
  if constexpr (Type::kDType == DType::kNVFP4) {
    for (int64_t c = 0; c < cols; ++c) {
      out[c] *= row.scale;
    }
  }
}

using DecodeRow = void (*)(const EncodedRow&, int64_t, float*);
constexpr auto kDecodeRow =
    WeightTypes::table<DecodeRow>([]<typename Type>() { return &decode_row_as<Type>; });

}  // namespace

int64_t LogicalTensor::elements() const {
  return rows() * cols();
}

int64_t LogicalTensor::cols() const {
  return shape.empty() ? 1 : shape.back();
}

int64_t LogicalTensor::rows() const {
  int64_t product = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) {
    product *= shape[i];
  }
  return product;
}

void decode_row(DType dtype, const EncodedRow& row, int64_t cols, float* out) noexcept {
  kDecodeRow[static_cast<size_t>(dtype)](row, cols, out);
}

void decode_rows(const LogicalTensor& tensor, int64_t first, int64_t count, float* out) {
  const int64_t cols = tensor.cols();
  const int64_t stride_bytes = row_bytes(tensor.dtype, cols);
  const bool separate_scales = tensor.dtype == DType::kNVFP4ModelOpt;
  const int64_t scales_stride =
      separate_scales ? cols / types::NVFP4ModelOpt::kFacts.block_values : 0;
  OCTET_CHECK(first >= 0 && count >= 0 && first + count <= tensor.rows());
  OCTET_CHECK(static_cast<int64_t>(tensor.data.size()) >= tensor.rows() * stride_bytes);
  OCTET_CHECK(static_cast<int64_t>(tensor.block_scales.size()) >= tensor.rows() * scales_stride);

  for (int64_t r = first; r < first + count; ++r) {
    const EncodedRow row{
        tensor.data.data() + r * stride_bytes,
        tensor.block_scales.data() + r * scales_stride,
        tensor.scale};
    decode_row(tensor.dtype, row, cols, out + (r - first) * cols);
  }
}

}  // namespace octet
