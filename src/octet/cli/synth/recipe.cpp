#include "octet/cli/synth/recipe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "octet/base/check.h"
#include "octet/quantize/recipe.h"

namespace octet::cli {
namespace {

bool ends_with(std::string_view text, std::string_view tail) {
  return text.size() >= tail.size() && text.substr(text.size() - tail.size()) == tail;
}

/// Rows of the tables whose height the metadata leave open.
int64_t vocabulary_rows(const Metadata& metadata) {
  return metadata.integer(metadata.string("general.architecture") + ".vocab_size");
}

/// Scales at which activations keep their size through any number of layers.
void choose_values(const Metadata& metadata, SynthTensor& planned) {
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

Recipe recipe_of(SynthRecipe recipe) {
  constexpr std::array<std::string_view, 4> kNames = {"BF16", "Q8_0", "Q4_K_M", "drafter-q4_1"};
  std::optional<Recipe> found = find_recipe(kNames.at(static_cast<size_t>(recipe)));
  OCTET_CHECK(found.has_value());
  return *std::move(found);
}

}  // namespace

uint32_t recipe_file_type(SynthRecipe recipe) {
  return recipe_of(recipe).file_type;
}

int64_t SynthTensor::rows() const {
  int64_t rows = 1;
  for (size_t dimension = 0; dimension + 1 < tensor.shape.size(); ++dimension) {
    rows *= tensor.shape[dimension];
  }
  return rows;
}

std::vector<SynthTensor> plan_tensors(const Metadata& metadata, SynthRecipe recipe) {
  std::vector<ExpectedTensor> tensors = expected_tensors(metadata);
  const auto left_out = [](const ExpectedTensor& tensor) {
    return tensor.presence == TensorPresence::kUnused || tensor.name == "output.weight";
  };
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(), left_out), tensors.end());
  std::vector<TensorFacts> facts;
  for (ExpectedTensor& tensor : tensors) {
    std::replace(
        tensor.shape.begin(), tensor.shape.end(), kAnyDimension, vocabulary_rows(metadata)
    );
    facts.push_back({tensor.name, tensor.shape, DType::kBF16});
  }
  const std::vector<TypeChoice> types = choose_types(recipe_of(recipe), {}, facts);
  std::vector<SynthTensor> plan;
  for (size_t i = 0; i < tensors.size(); ++i) {
    SynthTensor planned;
    planned.dtype = types[i].dtype;
    planned.tensor = std::move(tensors[i]);
    choose_values(metadata, planned);
    plan.push_back(std::move(planned));
  }
  return plan;
}

}  // namespace octet::cli
