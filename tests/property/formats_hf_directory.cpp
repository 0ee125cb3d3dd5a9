// A random model written as a Hugging Face directory and as a GGUF file opens as the same
// checkpoint, whatever prefix, towers, dead tensors and head copies the directory has.

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/formats/open_checkpoint.h"
#include "octet/formats/safetensors_writer.h"
#include "octet/formats/tensor_names.h"
#include "support/error_message.h"
#include "support/random_models.h"
#include "support/temporary_directory.h"
#include "support/write_checkpoint.h"

namespace octet {
namespace {

using test::RandomNumbers;
using test::TemporaryDirectory;

std::string quoted_types(const std::vector<bool>& sliding) {
  std::string list;
  for (const bool is_sliding : sliding) {
    list +=
        fmt::format("{}\"{}_attention\"", list.empty() ? "" : ",", is_sliding ? "sliding" : "full");
  }
  return list;
}

/// The text part of config.json for `shape`; numbers that vary by layer go to per_layer_config.
std::string text_config(const test::GemmaShape& shape) {
  std::string per_layer;
  for (size_t layer = 0; layer < shape.sliding.size(); ++layer) {
    per_layer += fmt::format(
        R"({}"{}":{{"head_dim":{},"intermediate_size":{},"num_key_value_heads":{}}})",
        per_layer.empty() ? "" : ",",
        layer,
        shape.sliding[layer] ? shape.sliding_head_dim : shape.full_head_dim,
        shape.feed_forward[layer],
        shape.kv_heads[layer]
    );
  }
  return fmt::format(
      R"({{"vocab_size":{},"hidden_size":{},"intermediate_size":1,"num_hidden_layers":{},"num_attention_heads":{},)"
      R"("num_key_value_heads":1,"head_dim":{},"global_head_dim":{},"max_position_embeddings":{},"sliding_window":{},)"
      R"("num_kv_shared_layers":{},"hidden_size_per_layer_input":{},"layer_types":[{}],"per_layer_config":{{{}}},)"
      R"("rms_norm_eps":1e-6,"tie_word_embeddings":{}{}}})",
      shape.vocabulary,
      shape.hidden,
      shape.sliding.size(),
      shape.heads,
      shape.sliding_head_dim,
      shape.full_head_dim,
      shape.context_length,
      shape.window,
      shape.shared_layers,
      shape.ple_width,
      quoted_types(shape.sliding),
      per_layer,
      shape.own_head ? "false" : "true",
      shape.softcap > 0.0 ? fmt::format(",\"final_logit_softcapping\":{}", shape.softcap) : ""
  );
}

struct HfTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
};

void write_safetensors(const std::string& path, const std::vector<HfTensor>& tensors) {
  std::vector<SafetensorsSpec> specs;
  specs.reserve(tensors.size());
  for (const HfTensor& tensor : tensors) {
    specs.push_back({tensor.name, "F32", tensor.shape});
  }
  SafetensorsWriter writer(path, specs);
  for (const HfTensor& tensor : tensors) {
    writer.write_tensor(tensor.name, tensor.data);
  }
  writer.finish();
}

/// The tensors of `model` under Hugging Face names, now and then with a head copy and towers.
std::vector<HfTensor> hf_tensors(
    const Checkpoint& model,
    const Metadata& canonical,
    const std::string& prefix,
    RandomNumbers& random
) {
  std::vector<HfTensor> tensors;
  for (const ExpectedTensor& expected : expected_tensors(canonical)) {
    if (const LogicalTensor* tensor = model.find(expected.name)) {
      const bool is_head = expected.name == "output.weight";
      const std::string name = (is_head ? "" : prefix) + expected.hf_name;
      tensors.push_back({name, tensor->shape, tensor->data});
    }
  }
  const LogicalTensor& embedding = model.at("token_embd.weight");
  if (model.find("output.weight") == nullptr && random.integer(0, 1) == 0) {
    static constexpr float kScale = 0.5F;
    tensors.push_back({"lm_head.weight", embedding.shape, embedding.data});
    // A copy that was quantized is a copy still.
    for (const char* part : {"lm_head.weight_scale_2", "lm_head.input_scale"}) {
      tensors.push_back({part, {}, std::as_bytes(std::span(&kScale, 1))});
    }
  }
  if (random.integer(0, 1) == 0) {
    tensors.push_back({"model.vision_tower.encoder.weight", embedding.shape, embedding.data});
    tensors.push_back({"model.embed_audio.projection.weight", embedding.shape, embedding.data});
  }
  return tensors;
}

std::string random_prefix(RandomNumbers& random) {
  constexpr const char* kPrefixes[] = {"model.language_model.", "model.", "language_model.model."};
  return kPrefixes[random.integer(0, 2)];
}

void write_config(
    const TemporaryDirectory& directory, const test::GemmaShape& shape, RandomNumbers& random
) {
  const bool nested = random.integer(0, 1) == 0;
  const std::string config = text_config(shape);
  directory.write(
      "config.json",
      nested ? R"({"model_type":"gemma4","text_config":)" + config + "}"
             : R"({"model_type":"gemma4_text",)" + config.substr(1)
  );
}

void expect_equal(const Checkpoint& hf, const Checkpoint& gguf) {
  ASSERT_EQ(hf.tensors().size(), gguf.tensors().size());
  for (const LogicalTensor& tensor : gguf.tensors()) {
    const LogicalTensor& other = hf.at(tensor.name);
    EXPECT_EQ(other.shape, tensor.shape) << tensor.name;
    ASSERT_EQ(other.data.size(), tensor.data.size()) << tensor.name;
    EXPECT_EQ(std::memcmp(other.data.data(), tensor.data.data(), tensor.data.size()), 0)
        << tensor.name;
  }
  for (const auto& [key, value] : gguf.metadata.entries()) {
    if (key.starts_with("gemma4.")) {
      const MetadataValue* other = hf.metadata.find(key);
      ASSERT_NE(other, nullptr) << key;
      EXPECT_TRUE(*other == value) << key;
    }
  }
}

TEST(HfDirectory, EqualsTheGgufFile) {
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomNumbers random(seed);
    test::GemmaShape shape = test::random_gemma_shape(seed);
    shape.rope_divisors = false;
    const std::shared_ptr<Checkpoint> model = test::make_gemma(shape, seed);
    const TemporaryDirectory directory;
    const std::string gguf_path = directory.file("model.gguf");
    test::write_gguf(gguf_path, model->metadata, model->tensors());
    const auto gguf = open_checkpoint(gguf_path);

    const std::string prefix = random_prefix(random);
    std::vector<HfTensor> tensors = hf_tensors(*model, gguf->metadata, prefix, random);
    write_safetensors(directory.file("model.safetensors"), tensors);
    write_config(directory, shape, random);
    expect_equal(*open_checkpoint(directory.path()), *gguf);

    const LogicalTensor& embedding = model->at("token_embd.weight");
    tensors.push_back({prefix + "layers.0.mlp.experts.weight", embedding.shape, embedding.data});
    write_safetensors(directory.file("model.safetensors"), tensors);
    EXPECT_THAT(
        test::error_message([&] { open_checkpoint(directory.path()); }),
        ::testing::HasSubstr("does not have: 'layers.0.mlp.experts.weight'")
    );
  }
}

}  // namespace
}  // namespace octet
