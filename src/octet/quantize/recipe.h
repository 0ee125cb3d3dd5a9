// Which weight type each tensor of a checkpoint gets: recipes as data, and rules of the user's own
// before them. Not for how values become codes (tensor/encode.h) and not for reading: types are
// read from the file, never derived. Invariant: the choice depends on names, shapes and source
// types alone, never on the order of the tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octet/tensor/dtype.h"

namespace octet {

/// As much of a tensor as a recipe looks at.
struct TensorFacts {
  std::string_view name;
  std::span<const int64_t> shape;  // outermost first
  DType dtype = DType::kF32;       // in the source
};

enum class RuleScope {
  kAll,
  kMoreBits,    // of the tensors that match, by layer and name, the first and last eighth and every
                // third between
  kIfHeadTied,  // only where the checkpoint has no output.weight
};

/// `pattern` is a name with * and ?; ".weight" at its end may be left out.
struct TypeRule {
  std::string pattern;
  DType dtype = DType::kF32;
  RuleScope scope = RuleScope::kAll;
};

struct Recipe {
  std::string name;
  DType base = DType::kBF16;
  std::vector<TypeRule> rules;  // the first that applies wins; `base` where none does
  uint32_t file_type = 0;       // general.file_type
};

/// "Q4_K_M" and "drafter-q4_1", or the name of a weight type: every matrix gets it. Case does not
/// matter. nullopt for other names.
std::optional<Recipe> find_recipe(std::string_view name);

/// All names that find_recipe knows, for messages.
std::vector<std::string> recipe_names();

struct TypeChoice {
  DType dtype = DType::kF32;
  bool fallback = false;  // the rows are not whole blocks of the type that the recipe names
};

/// One choice a tensor. Vectors and norms become F32, per_layer_model_proj keeps its type, matrices
/// follow the recipe; `overrides` come before its rules. Where rows are not whole blocks of a type,
/// the finer type of smaller blocks stands in (Q4_K: Q5_0, Q5_K: Q5_1, IQ4_XS: IQ4_NL, others:
/// Q8_0), else the source's float type, or F16 where it is none. Throws Error(kInvalidArgument)
/// naming an override that matches no matrix.
std::vector<TypeChoice> choose_types(
    const Recipe& recipe, std::span<const TypeRule> overrides, std::span<const TensorFacts> tensors
);

/// Parses "PATTERN=TYPE". Throws Error(kInvalidArgument).
TypeRule parse_type_rule(std::string_view text);

/// Whether `pattern` (with * and ?) is all of `text`.
bool matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace octet
