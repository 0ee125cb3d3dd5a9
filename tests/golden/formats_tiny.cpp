// The published tiny checkpoints in all their formats: shapes, taps and windows as their
// description says, and the Hugging Face copies equal to the GGUF files value by value.

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/formats/checkpoint_validation.h"
#include "octet/formats/gguf_reader.h"
#include "octet/formats/open_checkpoint.h"

namespace octet {
namespace {

using Integers = std::vector<int64_t>;

std::string path(const std::string& name) {
  return OCTET_SOURCE_DIR "/tests/golden/tiny/" + name;
}

/// Those too large for the project.
class LargerTinyCheckpoints : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(root_)) {
      GTEST_SKIP() << "no golden data at " << root_;
    }
  }
  std::string beside(const char* name) const { return root_ + name; }

  const std::string root_ = OCTET_SHARED_DIR "/golden/tiny/";
};

std::vector<float> values_of(const LogicalTensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  decode_rows(tensor, 0, tensor.rows(), values.data());
  return values;
}

/// Same tensors, shapes and decoded bits, whatever types they are stored in.
void expect_equal_values(const Checkpoint& a, const Checkpoint& b) {
  EXPECT_EQ(a.tensors().size(), b.tensors().size());
  for (const LogicalTensor& tensor : a.tensors()) {
    const LogicalTensor* other = b.find(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    ASSERT_EQ(tensor.shape, other->shape) << tensor.name;
    const std::vector<float> left = values_of(tensor);
    const std::vector<float> right = values_of(*other);
    EXPECT_EQ(std::memcmp(left.data(), right.data(), left.size() * sizeof(float)), 0)
        << tensor.name;
  }
}

/// Keys under `prefix` of `a`, less `except`, are in `b` with the same values.
void expect_equal_keys(
    const Metadata& a, const Metadata& b, const std::string& prefix, const std::string& except = {}
) {
  for (const auto& [key, value] : a.entries()) {
    if (key.starts_with(prefix) && key != except) {
      const MetadataValue* other = b.find(key);
      ASSERT_NE(other, nullptr) << key;
      EXPECT_TRUE(value == *other)
          << key << ": " << metadata_type_name(value) << " and " << metadata_type_name(*other);
    }
  }
}

TEST_F(LargerTinyCheckpoints, HuggingFaceTargetEqualsGguf) {
  const auto hf = open_checkpoint(beside("hf-tiny"));
  const auto gguf = open_checkpoint(path("tiny-bf16.gguf"));
  expect_equal_values(*hf, *gguf);
  expect_equal_keys(gguf->metadata, hf->metadata, "gemma4.");
  expect_equal_keys(hf->metadata, gguf->metadata, "gemma4.");
  EXPECT_EQ(hf->metadata.find_integers("tokenizer.ggml.eos_token_ids"), (Integers{1, 106, 50}));
  EXPECT_EQ(hf->metadata.integer("tokenizer.ggml.bos_token_id"), 2);
  EXPECT_EQ(hf->metadata.integer("general.sampling.top_k"), 64);
  EXPECT_TRUE(hf->sidecars.contains("tokenizer.json"));
  EXPECT_TRUE(hf->sidecars.contains("chat_template.jinja"));
}

TEST_F(LargerTinyCheckpoints, AShardOpensTheWholeSet) {
  const auto whole = open_checkpoint(beside("hf-tiny"));
  const auto shard = open_checkpoint(beside("hf-tiny/model-00002-of-00002.safetensors"));
  expect_equal_values(*whole, *shard);
}

TEST(TinyCheckpoints, HuggingFaceDrafterEqualsGguf) {
  const auto hf = open_checkpoint(path("hf-tiny-dflash"));
  const auto gguf = open_checkpoint(path("tiny-dflash-bf16.gguf"));
  expect_equal_values(*hf, *gguf);
  // Other converters have no key for the number of the target's layers.
  expect_equal_keys(hf->metadata, gguf->metadata, "dflash.", "dflash.target_block_count");
  EXPECT_EQ(hf->metadata.integer("dflash.target_block_count"), 12);
}

TEST_F(LargerTinyCheckpoints, TargetShapes) {
  for (const char* name : {"tinyq-q4_k_m.gguf", "tinyq-q8_0.gguf"}) {
    SCOPED_TRACE(name);
    const auto checkpoint = open_checkpoint(beside(name));
    EXPECT_EQ(checkpoint->architecture(), "gemma4");
    EXPECT_EQ(checkpoint->metadata.integer("gemma4.vocab_size"), 2048);
    EXPECT_EQ(checkpoint->at("token_embd.weight").shape, (Integers{2048, 256}));
    EXPECT_EQ(checkpoint->at("per_layer_token_embd.weight").shape, (Integers{2048, 768}));
    EXPECT_EQ(checkpoint->at("blk.5.attn_q.weight").shape, (Integers{512, 256}));
    EXPECT_EQ(checkpoint->at("blk.4.attn_k.weight").shape, (Integers{64, 256}));
    EXPECT_EQ(checkpoint->find("blk.6.attn_k.weight"), nullptr);
    EXPECT_EQ(
        checkpoint->metadata.find_integers("gemma4.attention.sliding_window_pattern"),
        (Integers{1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0})
    );
    EXPECT_EQ(checkpoint->metadata.find_integers("gemma4.feed_forward_length"), Integers(12, 256));
    EXPECT_EQ(checkpoint->metadata.find_strings("tokenizer.ggml.tokens")->size(), 2048U);
  }
}

TEST_F(LargerTinyCheckpoints, DrafterTapsAndWindows) {
  for (const char* name :
       {"tinyq-dflash-bf16.gguf", "tinyq-dflash-q4_1.gguf", "tinyq-dflash-q8_0.gguf"}) {
    SCOPED_TRACE(name);
    const auto checkpoint = open_checkpoint(beside(name));
    const Metadata& metadata = checkpoint->metadata;
    EXPECT_EQ(metadata.string("general.architecture"), "dflash");
    EXPECT_EQ(metadata.find_integers("dflash.target_layer_ids"), (Integers{0, 5, 10}));
    EXPECT_EQ(metadata.integer("dflash.attention.sliding_window"), 48);
    EXPECT_EQ(metadata.find_integers("dflash.attention.sliding_window_pattern"), (Integers{1, 0}));
    EXPECT_EQ(metadata.find_integers("dflash.attention.causal_pattern"), (Integers{0, 0}));
    EXPECT_EQ(metadata.integer("dflash.mask_token_id"), 4);
    EXPECT_EQ(metadata.integer("dflash.block_size"), 8);
    EXPECT_EQ(metadata.integer("dflash.vocab_size"), 2048);
    EXPECT_EQ(checkpoint->at("fc.weight").shape, (Integers{256, 768}));
  }
}

TEST(TinyCheckpoints, Nvfp4DrafterIsOneTensorAWeight) {
  const auto checkpoint = open_checkpoint(path("hf-tiny-dflash-nvfp4"));
  EXPECT_EQ(checkpoint->metadata.string("general.quant_algo"), "W4A16_NVFP4");
  EXPECT_EQ(checkpoint->metadata.find_integers("dflash.target_layer_ids"), (Integers{1, 5, 9}));
  const LogicalTensor& head = checkpoint->at("output.weight");
  EXPECT_EQ(head.dtype, DType::kNVFP4ModelOpt);
  EXPECT_EQ(head.shape, (Integers{2048, 128}));
  EXPECT_EQ(head.data.size(), 2048U * 64);
  EXPECT_EQ(head.block_scales.size(), 2048U * 8);
  EXPECT_GT(head.scale, 0.0F);
  EXPECT_FALSE(head.input_scale.has_value());
  EXPECT_EQ(checkpoint->at("fc.weight").dtype, DType::kNVFP4ModelOpt);
  EXPECT_EQ(checkpoint->at("blk.1.attn_norm.weight").dtype, DType::kBF16);

  // Four bits lose something, but not much: the weights are those of the BF16 drafter.
  const auto bf16 = open_checkpoint(path("hf-tiny-dflash"));
  const std::vector<float> coarse = values_of(checkpoint->at("fc.weight"));
  const std::vector<float> exact = values_of(bf16->at("fc.weight"));
  double error = 0.0;
  double norm = 0.0;
  for (size_t i = 0; i < exact.size(); ++i) {
    error += (coarse[i] - exact[i]) * (coarse[i] - exact[i]);
    norm += exact[i] * exact[i];
  }
  EXPECT_LT(error / norm, 0.02);
  EXPECT_GT(error, 0.0);
}

TEST(TinyCheckpoints, AllValuesAreFinite) {
  for (const char* name : {"tiny-bf16.gguf", "hf-tiny-dflash-nvfp4"}) {
    EXPECT_NO_THROW(check_tensor_values(*open_checkpoint(path(name)))) << name;
  }
}

TEST_F(LargerTinyCheckpoints, AllValuesAreFinite) {
  for (const char* name : {"tinyq-q4_k_m.gguf", "tinyq-dflash-q4_1.gguf"}) {
    EXPECT_NO_THROW(check_tensor_values(*open_checkpoint(beside(name)))) << name;
  }
}

TEST(ShippedPair, Opens) {
  const std::string pair = OCTET_SOURCE_DIR "/models/bolt-tiny/";
  const auto target = open_checkpoint(pair + "bolt-tiny-q8_0.gguf");
  EXPECT_EQ(target->metadata.integer("gemma4.vocab_size"), 4096);
  const auto drafter = open_checkpoint(pair + "bolt-tiny-dflash-q8_0.gguf");
  EXPECT_EQ(drafter->metadata.find_integers("dflash.target_layer_ids"), (Integers{1, 2, 3, 4}));
  EXPECT_EQ(drafter->metadata.number("dflash.embedding_scale"), 16.0);
}

TEST(MiniGguf, ReadsAsDescribed) {
  const GgufFile file = read_gguf(OCTET_SOURCE_DIR "/tests/golden/formats/mini.gguf");
  EXPECT_EQ(file.version, 3U);
  EXPECT_EQ(file.data_start, 256U);
  EXPECT_EQ(file.metadata.string("general.architecture"), "demo");
  EXPECT_EQ(file.metadata.find_integers("demo.arr"), (Integers{1, -2, 3}));
  ASSERT_EQ(file.tensors.size(), 2U);
  EXPECT_EQ(file.tensors[0].name, "a.weight");
  EXPECT_EQ(file.tensors[0].shape, (Integers{2, 3}));
  EXPECT_EQ(file.tensors[1].type_id, 2);
  EXPECT_EQ(file.tensors[1].data.size(), 36U);
}

}  // namespace
}  // namespace octet
