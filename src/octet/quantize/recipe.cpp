#include "octet/quantize/recipe.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "octet/base/error.h"
#include "octet/formats/tensor_names.h"

namespace octet {
namespace {

constexpr std::string_view kWeightSuffix = ".weight";

/// The public Q4_K_M rule: attention values and down projections get more bits in some layers, and
/// so do the tables where the head is the embedding.
Recipe q4_k_m() {
  return {
      "Q4_K_M",
      DType::kQ4K,
      {
          {"output", DType::kQ6K},
          {"token_embd", DType::kQ6K, RuleScope::kIfHeadTied},
          {"per_layer_token_embd", DType::kQ6K, RuleScope::kIfHeadTied},
          {"*attn_v", DType::kQ6K, RuleScope::kMoreBits},
          {"*ffn_down", DType::kQ6K, RuleScope::kMoreBits},
      },
      15};
}

/// The fusion matrix keeps its precision: in 4 bits it costs a drafter more acceptance than all its
/// layers together.
Recipe drafter_q4_1() {
  return {"drafter-q4_1", DType::kQ4_1, {{"fc", DType::kBF16}}, 3};
}

struct UniformType {
  DType dtype;
  uint32_t file_type;  // as other engines number files of this type
};

constexpr UniformType kUniformTypes[] = {
    {DType::kF32, 0},
    {DType::kF16, 1},
    {DType::kBF16, 32},
    {DType::kQ8_0, 7},
    {DType::kQ4_0, 2},
    {DType::kQ4_1, 3},
    {DType::kQ5_0, 8},
    {DType::kQ5_1, 9},
    {DType::kQ4K, 14},
    {DType::kQ5K, 16},
    {DType::kQ6K, 18},
    {DType::kIQ4NL, 25},
    {DType::kIQ4XS, 30},
    {DType::kMXFP4, 38},
    {DType::kNVFP4, 39},
};

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

bool rule_matches(const TypeRule& rule, std::string_view name) {
  return matches_pattern(rule.pattern, name) ||
         (name.ends_with(kWeightSuffix) &&
          matches_pattern(rule.pattern, name.substr(0, name.size() - kWeightSuffix.size())));
}

/// What may be stored in blocks at all.
bool is_quantizable(const TensorFacts& tensor) {
  return tensor.shape.size() >= 2 && tensor.name.ends_with(kWeightSuffix) &&
         tensor.name.find("_norm.weight") == std::string_view::npos;
}

/// The "more bits" rule for the i-th of n tensors of a kind.
bool gets_more_bits(int64_t i, int64_t n) {
  return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
}

DType finer_type(DType dtype) {
  switch (dtype) {
    case DType::kQ4K:
      return DType::kQ5_0;
    case DType::kQ5K:
      return DType::kQ5_1;
    case DType::kIQ4XS:
      return DType::kIQ4NL;
    default:
      return DType::kQ8_0;
  }
}

/// Where rows have no room for blocks at all values stay as they are, or become F16 where the
/// source has blocks that fit (NVFP4 of folders, 16 to a block).
TypeChoice fit_row(DType dtype, int64_t cols, DType source) {
  const auto fits = [cols](DType type) { return cols % dtype_facts(type).block_values == 0; };
  if (fits(dtype)) {
    return {dtype, false};
  }
  const DType finer = finer_type(dtype);
  if (fits(finer)) {
    return {finer, true};
  }
  const bool is_float = dtype_facts(source).block_values == 1;
  return {is_float ? source : DType::kF16, true};
}

/// Indices of the tensors by layer, then by name: the order in which rules count, whatever that of
/// the file is (safetensors often have layer 10 before layer 2).
std::vector<size_t> counting_order(std::span<const TensorFacts> tensors) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const auto key = [&](size_t i) {
      return std::pair(layer_number(tensors[i].name), tensors[i].name);
    };
    return key(a) < key(b);
  });
  return order;
}

/// Applies the rules of one recipe to tensors in counting_order.
class RuleBook {
 public:
  RuleBook(std::span<const TypeRule> rules, std::span<const TensorFacts> tensors) : rules_(rules) {
    head_tied_ = std::none_of(tensors.begin(), tensors.end(), [](const TensorFacts& tensor) {
      return tensor.name == "output.weight";
    });
    for (const TypeRule& rule : rules) {
      totals_
          .push_back(std::count_if(tensors.begin(), tensors.end(), [&](const TensorFacts& tensor) {
            return is_quantizable(tensor) && rule_matches(rule, tensor.name);
          }));
    }
    seen_.assign(rules.size(), 0);
  }

  std::optional<DType> next(std::string_view name) {
    for (size_t r = 0; r < rules_.size(); ++r) {
      if (rule_matches(rules_[r], name) && applies(r)) {
        return rules_[r].dtype;
      }
    }
    return std::nullopt;
  }

 private:
  bool applies(size_t r) {
    switch (rules_[r].scope) {
      case RuleScope::kAll:
        return true;
      case RuleScope::kIfHeadTied:
        return head_tied_;
      case RuleScope::kMoreBits:
        return gets_more_bits(seen_[r]++, totals_[r]);
    }
    return false;
  }

  std::span<const TypeRule> rules_;
  bool head_tied_ = false;
  std::vector<int64_t> totals_;  // tensors that match, by rule
  std::vector<int64_t> seen_;
};

void refuse_idle_overrides(
    std::span<const TypeRule> overrides, std::span<const TensorFacts> tensors
) {
  for (const TypeRule& rule : overrides) {
    const bool used = std::any_of(tensors.begin(), tensors.end(), [&](const TensorFacts& tensor) {
      return is_quantizable(tensor) && rule_matches(rule, tensor.name);
    });
    if (!used) {
      throw Error(
          ErrorKind::kInvalidArgument,
          fmt::format(
              "'{}' matches no matrix of this checkpoint; `octet inspect --tensors` lists the "
              "names",
              rule.pattern
          )
      );
    }
  }
}

}  // namespace

bool matches_pattern(std::string_view pattern, std::string_view text) {
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string_view::npos;  // the last * seen, and where its match ends for now
  size_t star_end = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_end = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_end;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::optional<Recipe> find_recipe(std::string_view name) {
  for (Recipe& recipe : std::vector<Recipe>{q4_k_m(), drafter_q4_1()}) {
    if (equal_ignoring_case(name, recipe.name)) {
      return std::move(recipe);
    }
  }
  for (const UniformType& type : kUniformTypes) {
    if (equal_ignoring_case(name, dtype_facts(type.dtype).name)) {
      return Recipe{std::string(dtype_facts(type.dtype).name), type.dtype, {}, type.file_type};
    }
  }
  return std::nullopt;
}

std::vector<std::string> recipe_names() {
  std::vector<std::string> names = {q4_k_m().name, drafter_q4_1().name};
  for (const UniformType& type : kUniformTypes) {
    names.emplace_back(dtype_facts(type.dtype).name);
  }
  return names;
}

std::vector<TypeChoice> choose_types(
    const Recipe& recipe, std::span<const TypeRule> overrides, std::span<const TensorFacts> tensors
) {
  refuse_idle_overrides(overrides, tensors);
  RuleBook own(overrides, tensors);
  RuleBook rules(recipe.rules, tensors);
  std::vector<TypeChoice> choices(tensors.size());
  for (const size_t i : counting_order(tensors)) {
    const TensorFacts& tensor = tensors[i];
    if (!is_quantizable(tensor)) {
      choices[i] = {tensor.shape.size() < 2 ? DType::kF32 : tensor.dtype, false};
      continue;
    }
    const std::optional<DType> by_user = own.next(tensor.name);
    const std::optional<DType> by_recipe = rules.next(tensor.name);  // always asked: it counts
    if (tensor.name == "per_layer_model_proj.weight" && !by_user) {
      choices[i] = {tensor.dtype, false};
      continue;
    }
    const DType dtype = by_user.value_or(by_recipe.value_or(recipe.base));
    choices[i] = fit_row(dtype, tensor.shape.back(), tensor.dtype);
  }
  return choices;
}

TypeRule parse_type_rule(std::string_view text) {
  const size_t equals = text.rfind('=');
  const std::optional<DType> dtype =
      equals == std::string_view::npos ? std::nullopt : dtype_from_name(text.substr(equals + 1));
  if (equals == 0 || !dtype || dtype_facts(*dtype).gguf_id < 0) {
    std::vector<std::string> types;
    for (const UniformType& type : kUniformTypes) {
      types.emplace_back(dtype_facts(type.dtype).name);
    }
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "'{}' is no PATTERN=TYPE such as 'blk.*.ffn_down=Q6_K' with one of {}",
            text,
            fmt::join(types, " ")
        )
    );
  }
  return {std::string(text.substr(0, equals)), *dtype, RuleScope::kAll};
}

}  // namespace octet
