// Which weight type each tensor of a synthetic checkpoint gets (by a recipe of quantize/recipe.h),
// and how large its values are. Invariant: the plan holds every tensor that such a checkpoint has.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "octet/formats/tensor_names.h"
#include "octet/tensor/dtype.h"
#include "octet/tensor/metadata.h"

namespace octet::cli {

enum class SynthRecipe { kBF16, kQ8_0, kQ4KM, kQ4_1 };

/// The value of general.file_type.
uint32_t recipe_file_type(SynthRecipe recipe);

struct SynthTensor {
  ExpectedTensor tensor;
  DType dtype = DType::kF32;
  /// Standard deviation of random values; 0: all values are `constant`.
  double deviation = 0.0;
  float constant = 0.0F;

  int64_t cols() const { return tensor.shape.back(); }
  int64_t rows() const;  // product of the other dimensions
};

/// Every tensor that the checkpoint with this canonical metadata holds, without unused ones.
std::vector<SynthTensor> plan_tensors(const Metadata& metadata, SynthRecipe recipe);

}  // namespace octet::cli
