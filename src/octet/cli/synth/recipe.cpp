#include "octet/cli/synth/recipe.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace octet::cli {
namespace {

bool ends_with(std::string_view text, std::string_view tail) {
  return text.size() >= tail.size() && text.substr(text.size() - tail.size()) == tail;
}

/// The "more bits" rule for the i-th of n tensors of a kind.
bool gets_more_bits(int64_t i, int64_t n) {
  return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
}

/// What stands in for a block type when the row is not whole blocks.
DType fit_row(DType dtype, int64_t cols) {
  const DType fallback = dtype == DType::kQ4K ? DType::kQ5_0 : DType::kQ8_0;
  const DType chosen = cols % dtype_facts(dtype).block_values == 0 ? dtype : fallback;
  return cols % dtype_facts(chosen).block_values == 0 ? chosen : DType::kF16;
}

class TypeRule {
 public:
  TypeRule(SynthRecipe recipe, const std::vector<ExpectedTensor>& tensors) : recipe_(recipe) {
    for (const ExpectedTensor& tensor : tensors) {
      values_ += static_cast<int64_t>(ends_with(tensor.name, "attn_v.weight"));
      downs_ += static_cast<int64_t>(ends_with(tensor.name, "ffn_down.weight"));
    }
  }

  /// Tensors must come in file order: the rule counts them.
  DType next(const ExpectedTensor& tensor) {
    const std::string& name = tensor.name;
    if (tensor.shape.size() < 2 || ends_with(name, "_norm.weight")) {
      return DType::kF32;
    }
    if (recipe_ == SynthRecipe::kBF16 || name == "per_layer_model_proj.weight") {
      return DType::kBF16;
    }
    const int64_t cols = tensor.shape.back();
    switch (recipe_) {
      case SynthRecipe::kQ8_0:
        return fit_row(DType::kQ8_0, cols);
      case SynthRecipe::kQ4_1:
        return name == "fc.weight" ? DType::kBF16 : fit_row(DType::kQ4_1, cols);
      default:
        return fit_row(next_k_type(name), cols);
    }
  }

 private:
  DType next_k_type(std::string_view name) {
    if (ends_with(name, "token_embd.weight") || name == "output.weight") {
      return DType::kQ6K;
    }
    if (ends_with(name, "attn_v.weight")) {
      return gets_more_bits(value_++, values_) ? DType::kQ6K : DType::kQ4K;
    }
    if (ends_with(name, "ffn_down.weight")) {
      return gets_more_bits(down_++, downs_) ? DType::kQ6K : DType::kQ4K;
    }
    return DType::kQ4K;
  }

  SynthRecipe recipe_;
  int64_t values_ = 0;
  int64_t downs_ = 0;
  int64_t value_ = 0;
  int64_t down_ = 0;
};

/// Rows of the tables whose height the metadata leave open.
int64_t vocabulary_rows(const Metadata& metadata) {
  return metadata.integer(metadata.string("general.architecture") + ".vocab_size");
}

/// Scales at which activations keep their size through any number of layers.
void choose_values(const Metadata& metadata, PlannedTensor& planned) {
  const std::string& name = planned.tensor.name;
  const auto width = static_cast<double>(planned.tensor.shape.back());
  if (name == "token_embd.weight") {
    planned.deviation = 1.0 / std::sqrt(width);
  } else if (name == "per_layer_token_embd.weight") {
    const double per_layer = metadata.number("gemma4.embedding_length_per_layer_input");
    planned.deviation = 1.0 / std::sqrt(per_layer);
  } else if (planned.tensor.shape.size() >= 2) {
    planned.deviation = 1.0 / std::sqrt(width);
  } else if (ends_with(name, "attn_q_norm.weight") && metadata.string("general.architecture") == "gemma4") {
    planned.constant = static_cast<float>(1.0 / std::sqrt(width));  // the attention scale is 1
  } else if (ends_with(name, "post_attention_norm.weight") || ends_with(name, "post_ffw_norm.weight")) {
    planned.constant = 0.5F;
  } else if (ends_with(name, ".post_norm.weight")) {
    planned.constant = 0.2F;
  } else {
    planned.constant = 1.0F;
  }
}

}  // namespace

std::optional<SynthRecipe> recipe_from_name(std::string_view name) {
  if (name == "bf16") {
    return SynthRecipe::kBF16;
  }
  if (name == "q8_0") {
    return SynthRecipe::kQ8_0;
  }
  if (name == "q4_k_m") {
    return SynthRecipe::kQ4KM;
  }
  if (name == "q4_1") {
    return SynthRecipe::kQ4_1;
  }
  return std::nullopt;
}

uint32_t recipe_file_type(SynthRecipe recipe) {
  switch (recipe) {
    case SynthRecipe::kBF16:
      return 32;
    case SynthRecipe::kQ8_0:
      return 7;
    case SynthRecipe::kQ4KM:
      return 15;
    case SynthRecipe::kQ4_1:
      return 3;
  }
  return 0;
}

int64_t PlannedTensor::rows() const {
  int64_t rows = 1;
  for (size_t dimension = 0; dimension + 1 < tensor.shape.size(); ++dimension) {
    rows *= tensor.shape[dimension];
  }
  return rows;
}

std::vector<PlannedTensor> plan_tensors(const Metadata& metadata, SynthRecipe recipe) {
  std::vector<ExpectedTensor> tensors = expected_tensors(metadata);
  const auto left_out = [](const ExpectedTensor& tensor) {
    return tensor.presence == TensorPresence::kUnused || tensor.name == "output.weight";
  };
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(), left_out), tensors.end());
  TypeRule rule(recipe, tensors);
  std::vector<PlannedTensor> plan;
  for (ExpectedTensor& tensor : tensors) {
    std::replace(
        tensor.shape.begin(), tensor.shape.end(), kAnyDimension, vocabulary_rows(metadata)
    );
    PlannedTensor planned;
    planned.dtype = rule.next(tensor);
    planned.tensor = std::move(tensor);
    choose_values(metadata, planned);
    plan.push_back(std::move(planned));
  }
  return plan;
}

}  // namespace octet::cli
