// Drafters and targets as different tools write them come out as one canonical checkpoint: taps,
// windows, causality, mask token, names, NVFP4 parts; and what octet cannot follow is refused by
// name.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/formats/canonical_metadata.h"
#include "octet/formats/hf_config.h"
#include "octet/formats/hf_config_writer.h"
#include "octet/formats/hf_tensors.h"
#include "octet/formats/json_value.h"
#include "octet/formats/open_checkpoint.h"
#include "octet/formats/tensor_names.h"
#include "support/error_message.h"
#include "support/random_models.h"
#include "support/temporary_directory.h"
#include "support/write_checkpoint.h"

namespace octet {
namespace {

using Integers = std::vector<int64_t>;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kPattern = "dflash.attention.sliding_window_pattern";
constexpr const char* kCausal = "dflash.attention.causal_pattern";
constexpr const char* kWindow = "dflash.attention.sliding_window";

Metadata drafter_keys(const std::string& architecture, int64_t layers = 2) {
  Metadata metadata;
  metadata.set("general.architecture", architecture);
  metadata.set(architecture + ".block_count", static_cast<uint32_t>(layers));
  return metadata;
}

Metadata llama_drafter() {
  Metadata metadata = drafter_keys("dflash");
  metadata.set("dflash.block_size", 8U);
  metadata.set("dflash.target_layers", MetadataArray(std::vector<int32_t>{2, 6, 10}));
  metadata.set("tokenizer.ggml.mask_token_id", 4U);
  return metadata;
}

TEST(DflashDialects, LlamaCountsTapsFromOne) {
  Metadata metadata = llama_drafter();
  canonicalise_dflash(metadata);
  EXPECT_EQ(metadata.find_integers("dflash.target_layer_ids"), (Integers{1, 5, 9}));
  EXPECT_EQ(metadata.integer("dflash.mask_token_id"), 4);
  EXPECT_EQ(metadata.integer(kWindow), 0);
  EXPECT_EQ(metadata.find_integers(kPattern), (Integers{0, 0}));
  EXPECT_EQ(metadata.find_integers(kCausal), (Integers{0, 0}));
}

TEST(DflashDialects, CanonicalKeysAreLeftAlone) {
  Metadata metadata = llama_drafter();
  canonicalise_dflash(metadata);
  Metadata again = metadata;
  canonicalise_dflash(again);
  EXPECT_TRUE(metadata.entries() == again.entries());
}

TEST(DflashDialects, LlamaWindows) {
  Metadata metadata = llama_drafter();
  metadata.set(kWindow, 48U);
  canonicalise_dflash(metadata);
  EXPECT_EQ(metadata.find_integers(kPattern), (Integers{1, 1}))
      << "a window without a pattern is for all layers";
  metadata = llama_drafter();
  metadata.set(kWindow, 48U);
  metadata.set(kPattern, MetadataArray(std::vector<bool>{true, false}));
  canonicalise_dflash(metadata);
  EXPECT_EQ(metadata.find_integers(kPattern), (Integers{1, 0}));
  EXPECT_EQ(metadata.find_integers(kCausal), (Integers{0, 0}));
  metadata = llama_drafter();
  metadata.set(kWindow, 48U);
  metadata.set(kPattern, 2U);
  canonicalise_dflash(metadata);
  EXPECT_EQ(metadata.find_integers(kPattern), (Integers{1, 0})) << "a period";
}

TEST(DflashDialects, LuceIsZeroBasedAndCausalInWindowedLayers) {
  const std::string architecture = "gemma4-dflash-draft";
  Metadata metadata = drafter_keys(architecture);
  metadata.set(architecture + ".dflash.block_size", 8U);
  metadata.set(architecture + ".dflash.mask_token_id", 4U);
  metadata.set(
      architecture + ".dflash.target_layer_ids", MetadataArray(std::vector<uint32_t>{1, 5, 9})
  );
  metadata.set(architecture + ".attention.sliding_window", 48U);
  metadata.set(
      architecture + ".attention.sliding_window_pattern",
      MetadataArray(std::vector<bool>{true, false})
  );
  canonicalise_dflash(metadata);
  EXPECT_EQ(metadata.string("general.architecture"), "dflash");
  EXPECT_EQ(metadata.find_integers("dflash.target_layer_ids"), (Integers{1, 5, 9}));
  EXPECT_EQ(metadata.integer("dflash.block_count"), 2);
  EXPECT_EQ(metadata.integer("dflash.block_size"), 8);
  EXPECT_EQ(metadata.find_integers(kPattern), (Integers{1, 0}));
  EXPECT_EQ(metadata.find_integers(kCausal), (Integers{1, 0}));
}

TEST(DflashDialects, IkLlama) {
  const std::string architecture = "dflash-draft";
  Metadata metadata = drafter_keys(architecture);
  metadata.set(architecture + ".dflash.block_size", 8U);
  metadata.set(architecture + ".dflash.mask_token_id", 4U);
  metadata.set(
      architecture + ".dflash.target_layer_ids", MetadataArray(std::vector<int32_t>{1, 5})
  );
  canonicalise_dflash(metadata);
  EXPECT_EQ(metadata.find_integers("dflash.target_layer_ids"), (Integers{1, 5}));
  EXPECT_EQ(metadata.find_integers(kCausal), (Integers{0, 0}));
}

TEST(DflashDialects, TheBoltDrafterHasItsWindowEvenWhenTheConverterLostIt) {
  Metadata metadata = drafter_keys("dflash", 5);
  metadata.set("dflash.embedding_length", 2560U);
  metadata.set("dflash.block_size", 8U);
  metadata.set("dflash.target_layers", MetadataArray(std::vector<int32_t>{6, 12, 18, 24, 36}));
  metadata.set("tokenizer.ggml.mask_token_id", 4U);
  Metadata said_otherwise = metadata;
  canonicalise_dflash(metadata);
  EXPECT_EQ(metadata.integer(kWindow), 1024);
  EXPECT_EQ(metadata.find_integers(kPattern), Integers(5, 1));
  EXPECT_EQ(metadata.find_integers(kCausal), Integers(5, 0));
  said_otherwise.set(kWindow, 0U);
  canonicalise_dflash(said_otherwise);
  EXPECT_EQ(said_otherwise.integer(kWindow), 0) << "what the file says counts";
}

/// The drafter as another tool writes it: keys below its architecture's name, two tensors renamed.
void write_in_dialect(
    const std::string& path, const Checkpoint& drafter, const std::string& architecture
) {
  Metadata metadata;
  for (const auto& [key, value] : drafter.metadata.entries()) {
    const std::string name = key.substr(key.find('.') + 1);
    const bool inner =
        name == "block_size" || name == "mask_token_id" || name == "target_layer_ids";
    if (key.starts_with("dflash.") && key != kCausal) {
      metadata.set(architecture + (inner ? ".dflash." : ".") + name, value);
    }
  }
  metadata.set("general.architecture", architecture);
  std::vector<LogicalTensor> tensors;
  for (LogicalTensor tensor : drafter.tensors()) {
    tensor.name = tensor.name == "fc.weight"                ? "dflash.fc.weight"
                  : tensor.name == "enc.output_norm.weight" ? "dflash.hidden_norm.weight"
                                                            : tensor.name;
    tensors.push_back(std::move(tensor));
  }
  test::write_gguf(path, metadata, tensors);
}

TEST(DflashDialects, FilesOfOtherToolsOpenAsTheSameDrafter) {
  const test::TemporaryDirectory directory;
  for (const std::string architecture : {"gemma4-dflash-draft", "dflash-draft"}) {
    SCOPED_TRACE(architecture);
    test::DFlashShape shape;
    shape.windowed = {true, false};
    shape.causal = {architecture == "gemma4-dflash-draft", false};
    const auto expected = test::make_dflash(shape, 3);
    const std::string path = directory.file(architecture + ".gguf");
    write_in_dialect(path, *expected, architecture);
    const auto found = open_checkpoint(path);
    for (const auto& [key, value] : expected->metadata.entries()) {
      const MetadataValue* other = found->metadata.find(key);
      ASSERT_NE(other, nullptr) << key;
      EXPECT_TRUE(value == *other) << key;
    }
    ASSERT_EQ(found->tensors().size(), expected->tensors().size());
    for (const LogicalTensor& tensor : expected->tensors()) {
      const LogicalTensor* other = found->find(tensor.name);
      ASSERT_NE(other, nullptr) << tensor.name;
      EXPECT_EQ(other->shape, tensor.shape) << tensor.name;
      EXPECT_TRUE(std::ranges::equal(other->data, tensor.data)) << tensor.name;
    }
  }
}

TEST(DflashDialects, RefusesToGuess) {
  const auto message = [](Metadata metadata) {
    return test::error_message([&] { canonicalise_dflash(metadata); });
  };
  Metadata no_taps = drafter_keys("dflash");
  EXPECT_THAT(
      message(no_taps),
      AllOf(HasSubstr("which layers of the target it taps"), HasSubstr("dflash.target_layers"))
  );
  Metadata zero = llama_drafter();
  zero.set("dflash.target_layers", MetadataArray(std::vector<int32_t>{0, 6}));
  EXPECT_THAT(message(zero), HasSubstr("'dflash.target_layers' holds 0; entries count from 1"));
  Metadata no_mask = drafter_keys("dflash");
  no_mask.set("dflash.block_size", 8U);
  no_mask.set("dflash.target_layers", MetadataArray(std::vector<int32_t>{2}));
  EXPECT_THAT(message(no_mask), HasSubstr("does not say its mask token"));
  Metadata no_block = drafter_keys("dflash");
  no_block.set("dflash.target_layers", MetadataArray(std::vector<int32_t>{2}));
  EXPECT_THAT(message(no_block), HasSubstr("does not say how many tokens a block has"));
}

// ---- Hugging Face configurations ----

/// config.json of a drafter with `nested` as dflash_config and `more` at the top level (both
/// without braces).
std::string draft_config(const std::string& nested, const std::string& more) {
  return R"({"architectures":["DFlashDraftModel"],"model_type":"qwen3","hidden_size":32,"num_hidden_layers":2,)"
         R"("num_attention_heads":4,"num_key_value_heads":2,"head_dim":8,"intermediate_size":48,"vocab_size":64,)"
         R"("max_position_embeddings":4096,"rope_theta":1000000.0)" +
         (more.empty() ? "" : "," + more) +
         (nested.empty() ? "" : R"(,"dflash_config":{)" + nested + "}") + "}";
}

const std::string kNested = R"("mask_token_id":4,"target_layer_ids":[0,2],"block_size":8)";

Metadata draft_metadata(const std::string& nested, const std::string& more) {
  return read_hf_config(parse_json(test::bytes_of(draft_config(nested, more)))).metadata;
}

std::string draft_message(const std::string& nested, const std::string& more) {
  return test::error_message([&] { draft_metadata(nested, more); });
}

TEST(HfDraftConfig, NestedAndFlatKeys) {
  const Metadata nested = draft_metadata(kNested, "");
  const Metadata flat = draft_metadata("", kNested);
  EXPECT_TRUE(nested.entries() == flat.entries());
  EXPECT_EQ(nested.find_integers("dflash.target_layer_ids"), (Integers{0, 2}));
  EXPECT_EQ(nested.integer("dflash.mask_token_id"), 4);
  EXPECT_EQ(nested.integer("dflash.block_size"), 8);
  EXPECT_EQ(nested.number("dflash.rope.freq_base"), 1e6);
}

TEST(HfDraftConfig, SoftCapOfTheDraftLogits) {
  constexpr const char* kCap = "dflash.final_logit_softcapping";
  EXPECT_EQ(draft_metadata(kNested, "").find_number(kCap), std::nullopt);
  EXPECT_EQ(
      draft_metadata(kNested + R"(,"final_logit_softcapping":15.0)", "").find_number(kCap), 15.0
  );
  EXPECT_EQ(draft_metadata(kNested, R"("final_logit_softcapping":0.0)").find_number(kCap), 0.0);
}

TEST(HfDraftConfig, RotaryParametersInEveryPlace) {
  const auto base = [](const std::string& more) {
    return draft_metadata(kNested, more).number("dflash.rope.freq_base");
  };
  EXPECT_EQ(base(""), 1e6);
  EXPECT_EQ(base(R"("rope_parameters":{"rope_type":"default","rope_theta":10000.0})"), 1e4);
  EXPECT_THAT(
      draft_message(kNested, R"("rope_parameters":{"rope_type":"yarn","rope_theta":10000.0})"),
      HasSubstr("yarn")
  );
  EXPECT_THAT(
      draft_message(
          kNested, R"("rope_parameters":{"rope_theta":1e4,"partial_rotary_factor":0.25})"
      ),
      HasSubstr("partial_rotary_factor")
  );
}

TEST(HfDraftConfig, WindowsAndCausality) {
  struct Case {
    std::string nested;
    std::string flat;
    int64_t window;
    Integers windowed;
    Integers causal;
  };
  const std::string sliding_full =
      R"("layer_types":["sliding_attention","full_attention"],"sliding_window":48)";
  const std::string all_full = R"("layer_types":["full_attention","full_attention"])";
  const std::vector<Case> cases = {
      {kNested, "", 0, {0, 0}, {0, 0}},
      {kNested,
       sliding_full,
       48,
       {1, 0},
       {1, 0}},  // one family: windowed layers are causal in the block
      {kNested + R"(,"causal":false)", sliding_full, 48, {1, 0}, {0, 0}},
      {kNested + R"(,"causal":true)", sliding_full, 48, {1, 0}, {1, 1}},
      {kNested + R"(,"causal":true)", sliding_full + R"(,"is_causal":false)", 48, {1, 0}, {0, 0}},
      // The other family: windows on all layers although the types say full.
      {kNested + R"(,"use_swa":true,"swa_window_size":96,"causal":false)",
       all_full,
       96,
       {1, 1},
       {0, 0}},
      {kNested + R"(,"use_swa":true)", all_full + R"(,"sliding_window":48)", 48, {1, 1}, {0, 0}},
      {kNested + R"(,"use_swa":false,"swa_window_size":96)", all_full, 0, {0, 0}, {0, 0}},
      // Without layer_types the qwen3 rule.
      {kNested,
       R"("use_sliding_window":true,"sliding_window":48,"max_window_layers":1)",
       48,
       {0, 1},
       {0, 1}},
      {kNested,
       R"("use_sliding_window":false,"sliding_window":48,"max_window_layers":0)",
       0,
       {0, 0},
       {0, 0}},
  };
  for (const Case& expected : cases) {
    SCOPED_TRACE(expected.nested + " | " + expected.flat);
    const Metadata metadata = draft_metadata(expected.nested, expected.flat);
    EXPECT_EQ(metadata.integer(kWindow), expected.window);
    EXPECT_EQ(metadata.find_integers(kPattern), expected.windowed);
    EXPECT_EQ(metadata.find_integers(kCausal), expected.causal);
  }
}

TEST(HfDraftConfig, RefusesVariantsByName) {
  EXPECT_THAT(
      draft_message(kNested + R"(,"projector_type":"domino")", ""),
      HasSubstr("'projector_type' is set")
  );
  EXPECT_THAT(
      draft_message(kNested, R"("conv_kernel_size":4)"), HasSubstr("'conv_kernel_size' is set")
  );
  EXPECT_THAT(draft_message(kNested, R"("selector_rank":8)"), HasSubstr("'selector_rank' is set"));
  EXPECT_EQ(draft_message(kNested, R"("selector_rank":null)"), "");
  EXPECT_THAT(
      draft_message(kNested, R"("attention_bias":true)"), HasSubstr("'attention_bias' is set")
  );
  EXPECT_THAT(
      draft_message(kNested, R"("hidden_act":"gelu")"), HasSubstr("'hidden_act' is 'gelu'")
  );
  EXPECT_THAT(
      draft_message(kNested, R"("rope_scaling":{"rope_type":"yarn","factor":4})"),
      HasSubstr("rope type 'yarn'")
  );
  EXPECT_EQ(draft_message(kNested, R"("rope_scaling":null)"), "");
  EXPECT_THAT(
      draft_message(R"("mask_token_id":4,"block_size":8)", ""),
      HasSubstr("'target_layer_ids' is missing")
  );
  EXPECT_THAT(
      draft_message(R"("target_layer_ids":[1],"block_size":8)", ""),
      HasSubstr("'mask_token_id' is missing")
  );
  EXPECT_THAT(
      draft_message(R"("target_layer_ids":[1],"mask_token_id":4)", ""),
      HasSubstr("'block_size' is missing")
  );
  EXPECT_THAT(
      draft_message(kNested, R"("num_target_layers":2)"),
      HasSubstr("'target_layer_ids' holds 2; expected layers from 0 to 1")
  );
  EXPECT_THAT(
      draft_message(kNested, R"("layer_types":["full_attention"])"),
      HasSubstr("'layer_types' has 1 entries")
  );
  EXPECT_THAT(
      draft_message(kNested, R"("layer_types":["full_attention","mamba"])"),
      HasSubstr("'layer_types' holds 'mamba'")
  );
  EXPECT_THAT(
      draft_message(kNested + R"(,"use_swa":true)", ""),
      HasSubstr("a drafter layer is windowed, but the window is 0")
  );
}

TEST(HfConfig, RefusesOtherModels) {
  const auto message = [](std::string_view json) {
    return test::error_message([&] { read_hf_config(parse_json(test::bytes_of(json))); });
  };
  EXPECT_THAT(
      message(R"({"model_type":"llama"})"), HasSubstr("model_type 'llama' is not supported")
  );
  EXPECT_THAT(message("{}"), HasSubstr("model_type (none) is not supported"));
  EXPECT_THAT(message(R"({"model_type":"gemma4"})"), HasSubstr("'num_hidden_layers' is missing"));
}

TEST(HfConfig, QuantisationIsNamed) {
  const auto message = [](std::string_view json) {
    Metadata metadata;
    return test::error_message([&] {
      add_quantization_config(metadata, parse_json(test::bytes_of(json)));
    });
  };
  for (const char* algorithm : {"NVFP4", "W4A16_NVFP4", "NVFP4_W4A16", "MIXED_PRECISION"}) {
    EXPECT_EQ(message(std::string(R"({"quant_algo":")") + algorithm + "\"}"), "") << algorithm;
    EXPECT_EQ(message(std::string(R"({"quantization":{"quant_algo":")") + algorithm + "\"}}"), "")
        << algorithm;
  }
  for (const char* algorithm :
       {"NVFP4_AWQ", "W4A16_AWQ", "W4A8_NVFP4_FP8", "NVFP4_SVDQUANT", "FP8", "MXFP8"}) {
    EXPECT_THAT(
        message(std::string(R"({"quant_algo":")") + algorithm + "\"}"), HasSubstr(algorithm)
    ) << algorithm;
    EXPECT_THAT(
        message(std::string(R"({"quantization":{"quant_algo":")") + algorithm + "\"}}"),
        HasSubstr(algorithm)
    );
  }
  EXPECT_THAT(
      message(R"({"quant_method":"gptq"})"),
      HasSubstr("quantisation method 'gptq' is not supported")
  );
  EXPECT_THAT(
      message(R"({"quant_algo":"NVFP4","group_size":32})"), HasSubstr("'group_size' is 32")
  );
}

TEST(HfConfigWriter, QuantisationFollowsTheWeights) {
  HfTensorFacts facts;
  facts.full_precision_modules = {"fc"};
  const auto written = [&](const char* algorithm, bool calibrated) {
    Metadata metadata = draft_metadata(kNested, "");
    if (algorithm != nullptr) {
      metadata.set("general.quant_algo", std::string(algorithm));
    }
    facts.nvfp4_modules = {{"layers.0.mlp.up_proj", calibrated}};
    const std::string config = hf_config(metadata, facts);
    constexpr std::string_view kKey = R"("quantization_config":)";
    const size_t begin = config.find(kKey) + kKey.size();
    return std::pair(
        config.substr(begin, config.size() - begin - 1), hf_quantization_config(metadata, facts)
    );
  };
  const std::pair<std::string, std::string> w4a16 = {
      R"({"quant_method":"modelopt","quant_algo":"W4A16_NVFP4","config_groups":{"group_0":)"
      R"({"weights":{"num_bits":4,"type":"float","group_size":16,"dynamic":false},)"
      R"("targets":["Linear"]}},"ignore":["fc"],"producer":{"name":"octet","version":"1"}})",
      R"({"producer":{"name":"octet","version":"1"},"quantization":{"quant_algo":"W4A16_NVFP4",)"
      R"("kv_cache_quant_algo":null,"group_size":16,"exclude_modules":["fc"]}})"};
  const std::pair<std::string, std::string> w4a4 = {
      R"({"quant_method":"modelopt","quant_algo":"NVFP4","config_groups":{"group_0":)"
      R"({"weights":{"num_bits":4,"type":"float","group_size":16,"dynamic":false},)"
      R"("input_activations":{"num_bits":4,"type":"float","group_size":16,"dynamic":false},)"
      R"("targets":["Linear"]}},"ignore":["fc"],"producer":{"name":"octet","version":"1"}})",
      R"({"producer":{"name":"octet","version":"1"},"quantization":{"quant_algo":"NVFP4",)"
      R"("kv_cache_quant_algo":null,"group_size":16,"exclude_modules":["fc"]}})"};
  EXPECT_EQ(written(nullptr, false), w4a16);
  EXPECT_EQ(written("W4A16_NVFP4", false), w4a16);
  EXPECT_EQ(written("W4A16_NVFP4", true), w4a16);
  EXPECT_EQ(written("NVFP4", false), w4a16) << "nobody could run it in W4A4";
  EXPECT_EQ(written("NVFP4", true), w4a4);
  EXPECT_EQ(written(nullptr, true), w4a4);
  EXPECT_EQ(written("MIXED_PRECISION", true), w4a4) << "nothing is mixed";
  EXPECT_EQ(written("MIXED_PRECISION", false), w4a16);
}

TEST(HfConfigWriter, NamesTheModulesOfAMixture) {
  Metadata metadata = draft_metadata(kNested, "");
  metadata.set("general.quant_algo", std::string("MIXED_PRECISION"));
  HfTensorFacts facts;
  facts.nvfp4_modules = {{"a", true}, {"b", false}};
  facts.full_precision_modules = {"fc"};
  const std::string layers = R"("quantized_layers":{"a":{"quant_algo":"NVFP4","group_size":16},)"
                             R"("b":{"quant_algo":"W4A16_NVFP4","group_size":16}})";
  const std::string group = R"({"num_bits":4,"type":"float","group_size":16,"dynamic":false})";
  EXPECT_THAT(
      hf_config(metadata, facts),
      HasSubstr(
          R"("quantization_config":{"quant_method":"modelopt","quant_algo":"MIXED_PRECISION",)"
          R"("config_groups":{"group_0":{"weights":)" +
          group + R"(,"input_activations":)" + group +
          R"(,"targets":["a"]},"group_1":{"weights":)" + group + R"(,"targets":["b"]}},)" + layers +
          R"(,"ignore":["fc"],)"
      )
  );
  EXPECT_THAT(
      hf_quantization_config(metadata, facts),
      HasSubstr(
          R"("quantization":{"quant_algo":"MIXED_PRECISION","kv_cache_quant_algo":null,)" + layers +
          "}}"
      )
  );
}

TEST(HfConfigWriter, NamesTheTypeOfTheWeights) {
  HfTensorFacts facts;
  for (const auto& [type, name] :
       {std::pair(DType::kBF16, "bfloat16"),
        std::pair(DType::kF16, "float16"),
        std::pair(DType::kF32, "float32")}) {
    facts.prevailing = type;
    EXPECT_THAT(
        hf_config(draft_metadata(kNested, ""), facts),
        HasSubstr(std::string(R"("dtype":")") + name + '"')
    );
  }
}

TEST(HfConfigWriter, KeepsTheTargetsNumberOfLayers) {
  const Metadata metadata = draft_metadata(kNested, R"("num_target_layers":3)");
  EXPECT_EQ(metadata.integer("dflash.target_block_count"), 3);
  const std::string config = hf_config(metadata, HfTensorFacts());
  EXPECT_THAT(config, HasSubstr(R"("num_target_layers":3)"));
  EXPECT_TRUE(
      read_hf_config(parse_json(test::bytes_of(config))).metadata.entries() == metadata.entries()
  );
}

TEST(HfConfig, WithoutSamplingTheTemperatureIsZero) {
  const auto temperature = [](const char* json) {
    Metadata metadata;
    add_generation_config(metadata, parse_json(test::bytes_of(json)));
    return metadata.find_number("general.sampling.temp");
  };
  EXPECT_EQ(temperature(R"({"do_sample":false,"temperature":1.5})"), 0.0);
  EXPECT_EQ(temperature(R"({"do_sample":false})"), 0.0);
  EXPECT_EQ(temperature(R"({"do_sample":true,"temperature":1.5})"), 1.5);
  EXPECT_EQ(temperature(R"({"temperature":1.5})"), 1.5);
  EXPECT_EQ(temperature("{}"), std::nullopt);
}

std::string gemma_config(const std::string& more) {
  return R"({"model_type":"gemma4_text","vocab_size":64,"hidden_size":32,"intermediate_size":48,)"
         R"("num_attention_heads":4,"num_key_value_heads":2,"head_dim":8,"max_position_embeddings":4096,)"
         R"("sliding_window":8)" +
         (more.empty() ? "" : "," + more) + "}";
}

Metadata gemma_metadata(const std::string& more) {
  return read_hf_config(parse_json(test::bytes_of(gemma_config(more)))).metadata;
}

TEST(HfGemmaConfig, DefaultsOfAFlatConfig) {
  const Metadata metadata = gemma_metadata(R"("num_hidden_layers":8)");
  EXPECT_EQ(
      metadata.find_integers("gemma4.attention.sliding_window_pattern"),
      (Integers{1, 1, 1, 1, 1, 0, 1, 0})
  ) << "every sixth layer and the last are full";
  EXPECT_EQ(metadata.integer("gemma4.attention.key_length"), 512);
  EXPECT_EQ(metadata.integer("gemma4.attention.key_length_swa"), 8);
  EXPECT_EQ(metadata.number("gemma4.rope.freq_base"), 1e6);
  EXPECT_EQ(metadata.number("gemma4.rope.freq_base_swa"), 1e4);
  EXPECT_FALSE(metadata.contains("gemma4.final_logit_softcapping"));
}

TEST(HfGemmaConfig, PerLayerOverrides) {
  const Metadata metadata = gemma_metadata(
      R"("num_hidden_layers":4,"layer_types":["sliding_attention","full_attention","sliding_attention","full_attention"],)"
      R"("per_layer_config":{"1":{"head_dim":16},"3":{"head_dim":16,"intermediate_size":96}})"
  );
  EXPECT_EQ(metadata.integer("gemma4.attention.key_length"), 16);
  EXPECT_EQ(metadata.integer("gemma4.attention.key_length_swa"), 8);
  EXPECT_EQ(metadata.find_integers("gemma4.feed_forward_length"), (Integers{48, 48, 48, 96}));
}

TEST(HfGemmaConfig, DoubleWideSharedLayers) {
  const Metadata metadata = gemma_metadata(
      R"("num_hidden_layers":4,"num_kv_shared_layers":2,"use_double_wide_mlp":true,"global_head_dim":16)"
  );
  EXPECT_EQ(metadata.find_integers("gemma4.feed_forward_length"), (Integers{48, 48, 96, 96}));
}

TEST(HfGemmaConfig, CountsAreCheckedBeforeTheyAreUsed) {
  const auto message = [](const std::string& shared, const std::string& ffn) {
    const std::string more =
        R"("num_hidden_layers":4,"use_double_wide_mlp":true,"num_kv_shared_layers":)" + shared;
    std::string config = gemma_config(more);
    config.replace(config.find(":48,"), 4, ":" + ffn + ",");
    return test::error_message([&] { read_hf_config(parse_json(test::bytes_of(config))); });
  };
  EXPECT_EQ(message("3", "48"), "");
  for (const char* shared : {"4", "-1", "12222222222222222", "-9223372036854775808"}) {
    EXPECT_THAT(
        message(shared, "48"),
        HasSubstr(std::string("'num_kv_shared_layers' is ") + shared + "; expected 0 to 3")
    );
  }
  for (const char* ffn : {"0", "9223372036854775807"}) {
    EXPECT_THAT(message("0", ffn), HasSubstr(std::string("'intermediate_size' is ") + ffn));
  }
}

TEST(HfGemmaConfig, RefusesWhatItCannotCompute) {
  const auto message = [](const std::string& more) {
    return test::error_message([&] { gemma_metadata("\"num_hidden_layers\":4," + more); });
  };
  EXPECT_THAT(message(R"("attention_k_eq_v":true)"), HasSubstr("'attention_k_eq_v' is set"));
  EXPECT_THAT(message(R"("enable_moe_block":true)"), HasSubstr("'enable_moe_block' is set"));
  EXPECT_THAT(message(R"("hidden_activation":"relu")"), HasSubstr("'hidden_activation' is 'relu'"));
  EXPECT_THAT(
      message(R"("rope_parameters":{"full_attention":{"rope_type":"yarn"}})"),
      HasSubstr("rope type 'yarn'")
  );
  EXPECT_THAT(
      message(R"("rope_parameters":{"full_attention":{"factor":8.0}})"), HasSubstr("rope 'factor'")
  );
  EXPECT_THAT(
      message(R"("per_layer_config":{"9":{"head_dim":16}})"),
      HasSubstr("'per_layer_config' entry '9'")
  );
  EXPECT_THAT(
      message(R"("per_layer_config":{"1":{"magic":16}})"), HasSubstr("overrides 'magic' of layer 1")
  );
  EXPECT_THAT(message(R"("vocab_size":"many")"), HasSubstr("is there twice"));
}

// ---- NVFP4 parts ----

struct PartsFixture {
  std::string codes = std::string(32, '\x21');  // [2, 32]
  std::string scales = std::string(4, '\x38');  // 1.0
  float global = 0.5F;
  float input = 0.25F;

  static SafetensorsTensor part(
      const std::string& name, const char* dtype, Integers shape, std::string_view bytes
  ) {
    return {name, dtype, std::move(shape), test::bytes_of(bytes)};
  }
  SafetensorsTensor number(const std::string& name, const float& value, Integers shape = {}) const {
    return {name, "F32", std::move(shape), std::as_bytes(std::span(&value, 1))};
  }
  std::vector<SafetensorsTensor> modelopt() const {
    return {
        part("fc.weight", "U8", {2, 16}, codes),
        part("fc.weight_scale", "F8_E4M3", {2, 2}, scales),
        number("fc.weight_scale_2", global)};
  }
};

TEST(Nvfp4Parts, ModelOptTripleIsOneTensor) {
  const PartsFixture parts;
  std::vector<SafetensorsTensor> tensors = parts.modelopt();
  tensors.push_back(parts.number("fc.input_scale", parts.input, {1}));
  const std::vector<LogicalTensor> joined = join_hf_tensors(tensors);
  ASSERT_EQ(joined.size(), 1U);
  EXPECT_EQ(joined[0].name, "fc.weight");
  EXPECT_EQ(joined[0].dtype, DType::kNVFP4ModelOpt);
  EXPECT_EQ(joined[0].shape, (Integers{2, 32}));
  EXPECT_EQ(joined[0].scale, 0.5F);
  EXPECT_EQ(joined[0].input_scale, 0.25F);
}

TEST(Nvfp4Parts, CompressedTensorsStoreReciprocals) {
  const PartsFixture parts;
  const std::vector<LogicalTensor> joined = join_hf_tensors(std::vector<SafetensorsTensor>{
      PartsFixture::part("fc.weight_packed", "U8", {2, 16}, parts.codes),
      PartsFixture::part("fc.weight_scale", "F8_E4M3", {2, 2}, parts.scales),
      parts.number("fc.weight_global_scale", parts.global, {1}),
      parts.number("fc.input_global_scale", parts.input, {1})});
  ASSERT_EQ(joined.size(), 1U);
  EXPECT_EQ(joined[0].name, "fc.weight");
  EXPECT_EQ(joined[0].scale, 2.0F);
  EXPECT_EQ(joined[0].input_scale, 4.0F);
}

TEST(Nvfp4Parts, IncompleteOrWrongPartsAreNamed) {
  const PartsFixture parts;
  const auto message = [](const std::vector<SafetensorsTensor>& tensors) {
    return test::error_message([&] { join_hf_tensors(tensors); });
  };
  std::vector<SafetensorsTensor> tensors = parts.modelopt();
  tensors.pop_back();
  EXPECT_THAT(
      message(tensors), AllOf(HasSubstr("'fc'"), HasSubstr("'.weight_scale_2' is missing"))
  );
  tensors = parts.modelopt();
  tensors.erase(tensors.begin() + 1);
  EXPECT_THAT(message(tensors), HasSubstr("'.weight_scale' is missing"));
  tensors.erase(tensors.begin());
  EXPECT_THAT(message(tensors), HasSubstr("its weight is missing"));
  tensors = parts.modelopt();
  tensors[1].shape = {2, 1};
  EXPECT_THAT(
      message(tensors),
      AllOf(HasSubstr("'fc.weight_scale' is F8_E4M3 [2, 1]"), HasSubstr("F8_E4M3 [2, 2]"))
  );
  tensors = parts.modelopt();
  tensors[0].dtype = "BF16";
  EXPECT_THAT(message(tensors), HasSubstr("expected U8 [out, in/2]"));
  tensors = parts.modelopt();
  tensors.push_back(PartsFixture::part("fc.pre_quant_scale", "BF16", {32}, parts.codes));
  EXPECT_THAT(message(tensors), HasSubstr("AWQ scaling is not supported"));
  const float zero = 0.0F;
  tensors = parts.modelopt();
  tensors[2] = parts.number("fc.weight_scale_2", zero);
  EXPECT_THAT(
      message(tensors), HasSubstr("tensor 'fc.weight_scale_2' is 0; expected a positive number")
  );
  tensors = parts.modelopt();
  tensors.push_back(tensors.front());
  EXPECT_THAT(message(tensors), HasSubstr("is there twice"));
  EXPECT_THAT(
      message({PartsFixture::part("x.weight", "I64", {1}, "12345678")}),
      HasSubstr("tensor 'x.weight' is I64")
  );
}

}  // namespace
}  // namespace octet
