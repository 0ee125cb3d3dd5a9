// Which weight type each tensor of a synthetic checkpoint gets, and how large its values are.
// The Q4_K_M rule is the public one (docs/architecture.md names the source): attention values and
// down projections get Q6_K in some layers, embeddings get Q6_K, the rest Q4_K. Readers must never
// rely on it: types are read from the file.
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

std::optional<SynthRecipe> recipe_from_name(std::string_view name);

/// The value of general.file_type.
uint32_t recipe_file_type(SynthRecipe recipe);

struct PlannedTensor {
  ExpectedTensor tensor;
  DType dtype = DType::kF32;
  /// Standard deviation of random values; 0: all values are `constant`.
  double deviation = 0.0;
  float constant = 0.0F;

  int64_t cols() const { return tensor.shape.back(); }
  int64_t rows() const;  // product of the other dimensions
};

/// Every tensor that the checkpoint with this canonical metadata holds, without unused ones.
std::vector<PlannedTensor> plan_tensors(const Metadata& metadata, SynthRecipe recipe);

}  // namespace octet::cli
