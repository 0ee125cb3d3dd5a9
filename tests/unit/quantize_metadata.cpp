// What a quantized file says of its types: what was true of the source's alone is gone.

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/quantize/portable_metadata.h"
#include "support/error_message.h"
#include "support/temporary_directory.h"

namespace octet::test {
namespace {

struct Weight {
  DType from;
  DType to;
  bool input_scale = false;
};

/// general.quant_algo of a file of these weights whose source says `algorithm`; "" for none.
std::string algorithm_of(const std::string& algorithm, const std::vector<Weight>& weights) {
  std::vector<LogicalTensor> tensors(weights.size());
  CheckpointPlan plan;
  for (size_t i = 0; i < weights.size(); ++i) {
    tensors[i].dtype = weights[i].from;
    if (weights[i].input_scale) {
      tensors[i].input_scale = 0.5F;
    }
    plan.push_back({&tensors[i], weights[i].to, false, {}});
  }
  Metadata metadata;
  metadata.set("general.quant_algo", algorithm);
  describe_new_types(metadata, plan);
  const std::string* found = metadata.find_string("general.quant_algo");
  return found != nullptr ? *found : "";
}

constexpr DType kCodes = DType::kNVFP4;
constexpr DType kFolderCodes = DType::kNVFP4ModelOpt;

TEST(DescribeNewTypes, TheAlgorithmStaysWithTheWeightsItIsAbout) {
  const Weight scaled = {kFolderCodes, kCodes, true};
  const Weight unscaled = {kCodes, kCodes, false};
  const Weight fresh = {DType::kBF16, kCodes, false};
  const Weight other = {kFolderCodes, DType::kQ8_0, true};
  EXPECT_EQ(algorithm_of("NVFP4", {scaled, scaled, other}), "NVFP4");
  EXPECT_EQ(algorithm_of("NVFP4", {scaled, fresh}), "MIXED_PRECISION");
  EXPECT_EQ(algorithm_of("NVFP4", {scaled, unscaled}), "MIXED_PRECISION");
  EXPECT_EQ(algorithm_of("W4A16_NVFP4", {scaled, fresh}), "W4A16_NVFP4");
  EXPECT_EQ(algorithm_of("NVFP4", {other, other}), "");
  EXPECT_EQ(algorithm_of("NVFP4", {fresh, other}), "");
  EXPECT_EQ(algorithm_of("NVFP4", {{DType::kBF16, kFolderCodes, false}}), "");
}

TEST(GatherMetadata, TakesTheDefaultOfSeveralChatTemplates) {
  const TemporaryDirectory directory;
  Checkpoint source;
  source.path = "m";
  source.metadata.set("tokenizer.ggml.model", std::string("gemma4"));
  source.sidecars.emplace("tokenizer_config.json", directory.file("tokenizer_config.json"));
  const auto chat_template = [&](const std::string& value) {
    directory.write("tokenizer_config.json", R"({"chat_template":)" + value + "}");
    const PortableMetadata all = gather_metadata(source, nullptr);
    const std::string* found = all.metadata.find_string("tokenizer.chat_template");
    return found != nullptr ? *found : "none";
  };
  EXPECT_EQ(chat_template(R"("a")"), "a");
  EXPECT_EQ(chat_template("null"), "none");
  EXPECT_EQ(
      chat_template(
          R"([{"name":"tool_use","template":"b"},{"name":"default","template":"c"},{"name":1}])"
      ),
      "c"
  );
  for (const char* value : {R"([{"name":"tool_use","template":"b"}])", R"([1,{}])", "[]", "3"}) {
    EXPECT_THAT(
        error_message([&] { chat_template(value); }), testing::HasSubstr("chat_template.jinja")
    ) << value;
  }
}

TEST(GatherMetadata, OnlyGgufFilesNeedATokenizer) {
  Checkpoint source;
  source.path = "m";
  EXPECT_THAT(
      error_message([&] { gather_metadata(source, nullptr); }), testing::HasSubstr("--tokenizer")
  );
  EXPECT_NO_THROW(gather_metadata(source, nullptr, TokenizerNeed::kOptional));
}

TEST(DescribeNewTypes, ImportanceOfTheSourceIsForgotten) {
  Metadata metadata;
  metadata.set("quantize.imatrix.file", std::string("old"));
  metadata.set("quantize.imatrix.chunks_count", uint32_t{7});
  metadata.set("general.name", std::string("x"));
  describe_new_types(metadata, {});
  EXPECT_EQ(metadata.entries().size(), 1U);
  EXPECT_TRUE(metadata.contains("general.name"));
}

}  // namespace
}  // namespace octet::test
