#include "octet/tensor/check_values.h"

#include <cmath>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/tensor/type_list.h"

namespace octet {

namespace {

/// Index of the first block that is_valid refuses, or `blocks`.
template <typename Type>
int64_t first_bad_block(const LogicalTensor& tensor, int64_t blocks) {
  for (int64_t b = 0; b < blocks; ++b) {
    bool valid = true;
    if constexpr (Type::kDType == DType::kNVFP4ModelOpt) {
      valid = Type::is_valid_scale(tensor.block_scales[static_cast<size_t>(b)]);
    } else {
      valid = Type::is_valid(tensor.data.data() + b * Type::kFacts.block_bytes);
    }
    if (!valid) {
      return b;
    }
  }
  return blocks;
}

using FirstBadBlock = int64_t (*)(const LogicalTensor&, int64_t);
constexpr auto kFirstBadBlock =
    WeightTypes::table<FirstBadBlock>([]<typename Type>() { return &first_bad_block<Type>; });

void check_scale(const LogicalTensor& tensor, float scale, std::string_view what) {
  if (!(std::isfinite(scale) && scale > 0.0F)) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format(
            "tensor '{}': its {} is {}, expected a positive finite number", tensor.name, what, scale
        )
    );
  }
}

}  // namespace

void check_values(const LogicalTensor& tensor) {
  check_scale(tensor, tensor.scale, "global scale");
  if (tensor.input_scale) {
    check_scale(tensor, *tensor.input_scale, "input scale");
  }
  const DTypeFacts& facts = dtype_facts(tensor.dtype);
  const int64_t blocks_per_row = tensor.cols() / facts.block_values;
  const int64_t blocks = tensor.rows() * blocks_per_row;
  const int64_t bad = kFirstBadBlock[static_cast<size_t>(tensor.dtype)](tensor, blocks);
  if (bad < blocks) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format(
            "tensor '{}': row {}, columns {} to {} ({}) hold a value or scale that is not finite; "
            "the file is damaged",
            tensor.name,
            bad / blocks_per_row,
            bad % blocks_per_row * facts.block_values,
            (bad % blocks_per_row + 1) * facts.block_values - 1,
            facts.name
        )
    );
  }
}

}  // namespace octet
