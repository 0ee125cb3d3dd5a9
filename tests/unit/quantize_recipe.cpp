// Recipes: which type each tensor gets.

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/quantize/recipe.h"

namespace octet::test {
namespace {

struct Tensor {
  std::string name;
  std::vector<int64_t> shape;
};

std::vector<DType> types_of(
    const std::string& recipe,
    const std::vector<Tensor>& tensors,
    const std::vector<TypeRule>& overrides = {}
) {
  std::vector<TensorFacts> facts;
  for (const Tensor& tensor : tensors) {
    facts.push_back({tensor.name, tensor.shape, DType::kBF16});
  }
  std::vector<DType> types;
  for (const TypeChoice& choice : choose_types(find_recipe(recipe).value(), overrides, facts)) {
    types.push_back(choice.dtype);
  }
  return types;
}

/// The layers of `count` whose `part` gets Q6_K by the recipe Q4_K_M.
std::vector<int> fine_layers(const std::string& part, int count) {
  std::vector<Tensor> tensors;
  for (int layer = 0; layer < count; ++layer) {
    tensors.push_back({fmt::format("blk.{}.attn_q.weight", layer), {256, 256}});
    tensors.push_back({fmt::format("blk.{}.{}.weight", layer, part), {256, 256}});
  }
  const std::vector<DType> types = types_of("q4_k_m", tensors);
  std::vector<int> layers;
  for (int layer = 0; layer < count; ++layer) {
    const auto at = static_cast<size_t>(layer) * 2;
    EXPECT_EQ(types[at], DType::kQ4K);
    if (types[at + 1] == DType::kQ6K) {
      layers.push_back(layer);
    }
  }
  return layers;
}

TEST(Recipe, PatternsMatchWholeNames) {
  EXPECT_TRUE(matches_pattern("blk.*.ffn_down", "blk.12.ffn_down"));
  EXPECT_TRUE(matches_pattern("*", ""));
  EXPECT_TRUE(matches_pattern("a*b*c", "aXbYbZc"));
  EXPECT_TRUE(matches_pattern("blk.?.x", "blk.7.x"));
  EXPECT_FALSE(matches_pattern("blk.?.x", "blk.12.x"));
  EXPECT_FALSE(matches_pattern("ffn_down", "blk.1.ffn_down"));
  EXPECT_FALSE(matches_pattern("a*b", "abc"));
  EXPECT_FALSE(matches_pattern("", "a"));
}

TEST(Recipe, Q4KMGivesMoreBitsToThePublishedLayers) {
  const std::vector<int> of_42 = {0,  1,  2,  3,  4,  7,  10, 13, 16, 19, 22,
                                  25, 28, 31, 34, 36, 37, 38, 39, 40, 41};
  EXPECT_EQ(fine_layers("ffn_down", 42), of_42);
  EXPECT_EQ(fine_layers("attn_v", 42), of_42);
  EXPECT_EQ(
      fine_layers("attn_v", 24), (std::vector<int>{0, 1, 2, 5, 8, 11, 14, 17, 20, 21, 22, 23})
  );
}

TEST(Recipe, ChoicesDoNotDependOnTheOrderOfTheTensors) {
  std::vector<Tensor> tensors = {
      {"token_embd.weight", {8, 256}},
      {"output_norm.weight", {256}},
      {"blk.5.ffn_down_shexp.weight", {8, 256}}};
  for (int layer = 0; layer < 42; ++layer) {
    for (const char* part : {"attn_q", "attn_v", "ffn_down", "proj"}) {
      tensors.push_back({fmt::format("blk.{}.{}.weight", layer, part), {256, 256}});
    }
  }
  const auto by_name = [](const std::vector<Tensor>& list) {
    const std::vector<DType> types = types_of("Q4_K_M", list);
    std::map<std::string, DType> result;
    for (size_t i = 0; i < list.size(); ++i) {
      result[list[i].name] = types[i];
    }
    return result;
  };
  const std::map<std::string, DType> expected = by_name(tensors);
  std::vector<Tensor> sorted = tensors;
  std::ranges::sort(sorted, {}, &Tensor::name);
  EXPECT_EQ(by_name(sorted), expected) << "layer 10 before layer 2, as in safetensors";
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    std::ranges::shuffle(tensors, random);
    EXPECT_EQ(by_name(tensors), expected) << "seed " << seed;
  }
}

TEST(Recipe, TablesAreFineWhereTheHeadIsTied) {
  const std::vector<Tensor> tied = {
      {"token_embd.weight", {8, 256}},
      {"per_layer_token_embd.weight", {8, 512}},
      {"per_layer_model_proj.weight", {512, 256}},
      {"output_norm.weight", {256}}};
  EXPECT_THAT(
      types_of("Q4_K_M", tied),
      testing::ElementsAre(DType::kQ6K, DType::kQ6K, DType::kBF16, DType::kF32)
  );
  std::vector<Tensor> untied = tied;
  untied.push_back({"output.weight", {8, 256}});
  EXPECT_THAT(
      types_of("Q4_K_M", untied),
      testing::ElementsAre(DType::kQ4K, DType::kQ4K, DType::kBF16, DType::kF32, DType::kQ6K)
  );
}

TEST(Recipe, FusionOfADrafterStaysBF16) {
  EXPECT_THAT(
      types_of("drafter-q4_1", {{"fc.weight", {64, 192}}, {"blk.0.attn_q.weight", {64, 64}}}),
      testing::ElementsAre(DType::kBF16, DType::kQ4_1)
  );
}

TEST(Recipe, RowsThatAreNoWholeBlocksGetFinerTypes) {
  const auto one = [](const std::string& recipe, int64_t cols) {
    return types_of(recipe, {{"blk.0.proj.weight", {8, cols}}}).front();
  };
  EXPECT_EQ(one("Q4_K", 64), DType::kQ5_0);
  EXPECT_EQ(one("Q5_K", 64), DType::kQ5_1);
  EXPECT_EQ(one("Q6_K", 64), DType::kQ8_0);
  EXPECT_EQ(one("IQ4_XS", 64), DType::kIQ4NL);
  EXPECT_EQ(one("NVFP4", 96), DType::kQ8_0);
  EXPECT_EQ(one("Q4_K", 48), DType::kBF16) << "as it is: F16 has no room for its largest values";
  EXPECT_EQ(one("q4_k", 256), DType::kQ4K);
}

TEST(Recipe, RulesOfTheUserComeFirstAndMustMatchSomething) {
  const std::vector<Tensor> tensors = {
      {"per_layer_model_proj.weight", {64, 256}},
      {"blk.0.ffn_down.weight", {64, 256}},
      {"blk.1.ffn_down.weight", {64, 256}}};
  const std::vector<TypeRule> rules = {
      parse_type_rule("blk.1.*=q8_0"),
      parse_type_rule("*ffn_down.weight=Q5_K"),
      parse_type_rule("per_layer_model_proj=Q8_0")};
  EXPECT_THAT(
      types_of("Q4_K", tensors, rules),
      testing::ElementsAre(DType::kQ8_0, DType::kQ5K, DType::kQ8_0)
  );
  EXPECT_THROW(types_of("Q4_K", tensors, {parse_type_rule("blk.7.*=Q8_0")}), Error);
  for (const char* text : {"a", "=Q8_0", "a=", "a=Q9", "a=NVFP4_MODELOPT"}) {
    EXPECT_THROW(parse_type_rule(text), Error) << text;
  }
}

TEST(Recipe, EveryNameIsFoundWhateverItsCase) {
  for (std::string name : recipe_names()) {
    EXPECT_TRUE(find_recipe(name).has_value()) << name;
    std::transform(name.begin(), name.end(), name.begin(), ::tolower);
    EXPECT_TRUE(find_recipe(name).has_value()) << name;
  }
  EXPECT_FALSE(find_recipe("Q3_K_M").has_value());
}

}  // namespace
}  // namespace octet::test
