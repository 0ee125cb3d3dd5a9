// What a user reads when a file is not the model it should be: wrong kind, wrong shapes, missing
// and unknown tensors.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/formats/open_checkpoint.h"
#include "octet/formats/safetensors_writer.h"
#include "octet/formats/tensor_names.h"
#include "support/error_message.h"
#include "support/format_bytes.h"
#include "support/random_models.h"
#include "support/temporary_directory.h"
#include "support/write_checkpoint.h"

namespace octet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class OpenCheckpoint : public ::testing::Test {
 protected:
  std::string message(const std::string& path) const {
    return test::error_message([&] { open_checkpoint(path); });
  }

  /// Writes `metadata` and `tensors` and says what opening them gives.
  std::string message_for(const Metadata& metadata, const std::vector<LogicalTensor>& tensors)
      const {
    const std::string path = directory_.file("model.gguf");
    test::write_gguf(path, metadata, tensors);
    std::string text = message(path);
    if (!text.empty()) {
      EXPECT_THAT(text, StartsWith(path + ": "));
    }
    return text;
  }

  static std::vector<LogicalTensor> tensors_of(const Checkpoint& checkpoint) {
    return {checkpoint.tensors().begin(), checkpoint.tensors().end()};
  }

  static LogicalTensor& named(std::vector<LogicalTensor>& tensors, const std::string& name) {
    return *std::find_if(tensors.begin(), tensors.end(), [&](const LogicalTensor& t) {
      return t.name == name;
    });
  }

  template <typename T>
  std::string message_with_key(const std::string& key, T value) const {
    Metadata metadata = target_->metadata;
    metadata.set(key, MetadataValue(value));
    return message_for(metadata, tensors_of(*target_));
  }

  test::TemporaryDirectory directory_;
  std::shared_ptr<Checkpoint> target_ = test::make_gemma({}, 1);
  std::shared_ptr<Checkpoint> draft_ = test::make_dflash({}, 1);
};

TEST_F(OpenCheckpoint, SaysWhatThePathIs) {
  EXPECT_THAT(message(directory_.file("absent.gguf")), HasSubstr("absent.gguf"));
  EXPECT_THAT(
      message(directory_.write("empty", "")),
      HasSubstr("neither a GGUF nor a safetensors file (0 bytes)")
  );
  EXPECT_THAT(message(directory_.write("text", "hello there")), HasSubstr("name a .gguf file"));
  EXPECT_THAT(message(directory_.path()), HasSubstr("no config.json in this directory"));
  const std::string weights = directory_.write("w", test::safetensors_bytes("{}", ""));
  EXPECT_THAT(message(weights), HasSubstr("needs its config.json beside it"));
  directory_.write("config.json", R"({"model_type":"gemma4"})");
  EXPECT_THAT(
      message(directory_.path()),
      HasSubstr("0 .safetensors files and no model.safetensors.index.json")
  );
  EXPECT_THAT(message(weights), HasSubstr("config.json: 'num_hidden_layers' is missing"));
}

TEST_F(OpenCheckpoint, RecognisesContentNotNames) {
  const std::string path = directory_.file("sha256-0123");
  test::write_gguf(path, target_->metadata, target_->tensors());
  EXPECT_EQ(open_checkpoint(path)->architecture(), "gemma4");
}

TEST_F(OpenCheckpoint, OtherArchitectures) {
  Metadata metadata;
  EXPECT_THAT(message_for(metadata, {}), HasSubstr("'general.architecture'"));
  metadata.set("general.architecture", std::string("llama"));
  EXPECT_THAT(
      message_for(metadata, {}),
      HasSubstr(
          "architecture 'llama' is not supported; expected a gemma4 target or a dflash drafter"
      )
  );
  metadata.set("general.architecture", std::string("gemma4-assistant"));
  EXPECT_THAT(
      message_for(metadata, {}), HasSubstr("architecture 'gemma4-assistant' is not supported")
  );
}

TEST_F(OpenCheckpoint, MissingTensorsAreNamed) {
  std::vector<LogicalTensor> tensors = tensors_of(*target_);
  std::erase_if(tensors, [](const LogicalTensor& t) {
    return t.name == "blk.2.attn_q.weight" || t.name == "output_norm.weight";
  });
  EXPECT_THAT(
      message_for(target_->metadata, tensors),
      AllOf(
          HasSubstr("missing"),
          HasSubstr("'blk.2.attn_q.weight'"),
          HasSubstr("'output_norm.weight'")
      )
  );
  tensors = tensors_of(*target_);
  std::erase_if(tensors, [](const LogicalTensor& t) { return t.name.ends_with("norm.weight"); });
  EXPECT_THAT(message_for(target_->metadata, tensors), HasSubstr("more"));
  tensors = tensors_of(*draft_);
  std::erase_if(tensors, [](const LogicalTensor& t) { return t.name == "fc.weight"; });
  EXPECT_THAT(message_for(draft_->metadata, tensors), HasSubstr("'fc.weight'"));
}

TEST_F(OpenCheckpoint, UnknownTensorsAreNamed) {
  for (const char* name :
       {"blk.0.ffn_gate_inp.weight",
        "blk.9.attn_q.weight",
        "blk.0.attn_q.bias",
        "blk.01.attn_q.weight"}) {
    std::vector<LogicalTensor> tensors = tensors_of(*target_);
    tensors.push_back(named(tensors, "output_norm.weight"));
    tensors.back().name = name;
    EXPECT_THAT(
        message_for(target_->metadata, tensors), AllOf(HasSubstr("does not have"), HasSubstr(name))
    ) << name;
  }
}

TEST_F(OpenCheckpoint, TowersAreLeftAlone) {
  for (const char* name :
       {"v.blk.0.attn_q.weight", "a.conv1d.weight", "mm.input_projection.weight"}) {
    std::vector<LogicalTensor> tensors = tensors_of(*target_);
    tensors.push_back(named(tensors, "output_norm.weight"));
    tensors.back().name = name;
    EXPECT_EQ(message_for(target_->metadata, tensors), "") << name;
  }
}

TEST_F(OpenCheckpoint, WrongShapesSayBoth) {
  std::vector<LogicalTensor> tensors = tensors_of(*target_);
  LogicalTensor& q = named(tensors, "blk.0.attn_q.weight");
  std::swap(q.shape[0], q.shape[1]);
  q.shape = {q.shape[0] * q.shape[1]};
  EXPECT_THAT(
      message_for(target_->metadata, tensors),
      HasSubstr("tensor 'blk.0.attn_q.weight' has shape [1024]; the metadata call for [32, 32]")
  );
}

TEST_F(OpenCheckpoint, MetadataDecideTheShapes) {
  EXPECT_THAT(
      message_with_key("gemma4.embedding_length", 64U),
      HasSubstr("has shape [64, 32]; the metadata call for [64, 64]")
  );
  EXPECT_THAT(
      message_with_key("gemma4.attention.head_count", 8U), HasSubstr("blk.0.attn_q.weight")
  );
  EXPECT_THAT(
      message_with_key("gemma4.attention.key_length", 32U), HasSubstr("only 32 is supported")
  );
}

TEST_F(OpenCheckpoint, ImpossibleNumbersNameTheKey) {
  EXPECT_THAT(
      message_with_key("gemma4.block_count", 0U),
      HasSubstr("'gemma4.block_count' is 0; expected 1 to 1024")
  );
  EXPECT_THAT(
      message_with_key("gemma4.block_count", 4000000000U),
      HasSubstr("'gemma4.block_count' is 4000000000")
  );
  EXPECT_THAT(message_with_key("gemma4.block_count", -1), HasSubstr("'gemma4.block_count' is -1"));
  EXPECT_THAT(
      message_with_key("gemma4.embedding_length", 0U), HasSubstr("'gemma4.embedding_length' is 0")
  );
  EXPECT_THAT(
      message_with_key("gemma4.embedding_length", uint64_t{1} << 40U),
      HasSubstr("'gemma4.embedding_length'")
  );
  EXPECT_THAT(
      message_with_key("gemma4.embedding_length", 32.0F),
      HasSubstr("expected an integer, found f32")
  );
  EXPECT_THAT(
      message_with_key("gemma4.attention.head_count", 3U), HasSubstr("3 query heads cannot share 2")
  );
  EXPECT_THAT(
      message_with_key("gemma4.attention.key_length", 15U), HasSubstr("expected an even number")
  );
  EXPECT_THAT(
      message_with_key("gemma4.attention.shared_kv_layers", 4U), HasSubstr("expected 0 to 3")
  );
  EXPECT_THAT(
      message_with_key("gemma4.attention.shared_kv_layers", 3U),
      HasSubstr("none of the first 1 layers")
  );
  EXPECT_THAT(
      message_with_key("gemma4.attention.layer_norm_rms_epsilon", -1.0F),
      HasSubstr("expected a positive number")
  );
  EXPECT_THAT(
      message_with_key("gemma4.rope.freq_base", 0.0F), HasSubstr("expected a positive number")
  );
  EXPECT_THAT(
      message_with_key("gemma4.rope.scaling.type", std::string("yarn")),
      HasSubstr("only 'none' is supported")
  );
  EXPECT_THAT(message_with_key("gemma4.expert_count", 8U), HasSubstr("mixture-of-experts"));
  EXPECT_THAT(
      message_with_key("gemma4.feed_forward_length", MetadataArray(std::vector<uint32_t>{48, 48})),
      HasSubstr("gemma4.feed_forward_length")
  );
  EXPECT_THAT(
      message_with_key("gemma4.attention.sliding_window_pattern", 0U),
      HasSubstr("expected a period of at least 1")
  );
}

TEST_F(OpenCheckpoint, AVocabularyLargerThanTheEmbedding) {
  const std::vector<std::string_view> tokens(65, "x");
  EXPECT_THAT(
      message_with_key("tokenizer.ggml.tokens", MetadataArray(tokens)),
      HasSubstr("the tokenizer has 65 tokens, but the embedding only 64 rows")
  );
  EXPECT_EQ(
      message_with_key(
          "tokenizer.ggml.tokens", MetadataArray(std::vector<std::string_view>(60, "x"))
      ),
      ""
  );
}

TEST_F(OpenCheckpoint, DrafterNumbers) {
  const auto with = [&](const std::string& key, const MetadataValue& value) {
    Metadata metadata = draft_->metadata;
    metadata.set(key, value);
    return message_for(metadata, tensors_of(*draft_));
  };
  EXPECT_EQ(with("dflash.block_size", 8U), "");
  EXPECT_THAT(with("dflash.block_size", 1U), HasSubstr("'dflash.block_size' is 1; expected 2 to"));
  EXPECT_THAT(
      with("dflash.target_layer_ids", MetadataArray(std::vector<uint32_t>{0, 1, 2})),
      HasSubstr("tensor 'fc.weight' has shape [32, 64]; the metadata call for [32, 96]")
  );
  EXPECT_THAT(
      with("dflash.target_layer_ids", MetadataArray(std::vector<uint32_t>{})),
      HasSubstr("at least one number")
  );
  EXPECT_THAT(with("dflash.target_layer_ids", 3U), HasSubstr("dflash.target_layer_ids"));
  EXPECT_THAT(
      with("dflash.attention.sliding_window_pattern", MetadataArray(std::vector<bool>{true})),
      HasSubstr("dflash.attention.sliding_window_pattern")
  );
}

TEST_F(OpenCheckpoint, RopeFrequenciesAreMadeWhenAbsent) {
  test::GemmaShape shape;
  shape.rope_divisors = false;
  const std::shared_ptr<Checkpoint> written = test::make_gemma(shape, 1);
  const std::string path = directory_.file("model.gguf");
  test::write_gguf(path, written->metadata, written->tensors());
  const auto read = open_checkpoint(path);
  const LogicalTensor& divisors = read->at("rope_freqs.weight");
  std::vector<float> values(8);
  ASSERT_EQ(divisors.shape, std::vector<int64_t>{8});
  decode_rows(divisors, 0, 1, values.data());
  EXPECT_EQ(values, (std::vector<float>{1, 1, 1e30F, 1e30F, 1e30F, 1e30F, 1e30F, 1e30F}));
}

TEST_F(OpenCheckpoint, Nvfp4ScalesAreFolded) {
  test::DFlashShape shape;
  shape.hidden = 64;
  shape.feed_forward = 64;
  shape.head_dim = 16;
  shape.dtype = DType::kNVFP4;
  const std::shared_ptr<Checkpoint> draft = test::make_dflash(shape, 1);
  const float scale = 0.125F;
  const float bad = -1.0F;
  LogicalTensor extra;
  extra.name = "blk.0.attn_q.scale";
  extra.shape = {1};
  extra.data = std::as_bytes(std::span(&scale, 1));
  std::vector<LogicalTensor> tensors = tensors_of(*draft);
  tensors.push_back(extra);
  extra.name = "blk.0.attn_q.input_scale";
  tensors.push_back(extra);
  const std::string path = directory_.file("draft.gguf");
  test::write_gguf(path, draft->metadata, tensors);
  const auto read = open_checkpoint(path);
  EXPECT_EQ(read->at("blk.0.attn_q.weight").scale, 0.125F);
  EXPECT_EQ(read->at("blk.0.attn_q.weight").input_scale, 0.125F);
  EXPECT_EQ(read->at("blk.0.attn_k.weight").scale, 1.0F);
  EXPECT_EQ(read->find("blk.0.attn_q.scale"), nullptr);

  tensors.back().data = std::as_bytes(std::span(&bad, 1));
  EXPECT_THAT(
      message_for(draft->metadata, tensors),
      HasSubstr("'blk.0.attn_q.input_scale' is -1; expected a positive")
  );
  tensors.back().name = "blk.0.attn_norm.scale";
  EXPECT_THAT(
      message_for(draft->metadata, tensors),
      HasSubstr("'blk.0.attn_norm.scale' scales 'blk.0.attn_norm.weight', which is not")
  );
}

TEST_F(OpenCheckpoint, SplitFilesMustBelongTogether) {
  const std::vector<std::string> paths = test::write_gguf_parts(directory_.file("m"), *target_, 3);
  ASSERT_EQ(message(paths[2]), "");
  const std::string lone = directory_.file("lone.gguf");
  std::filesystem::copy_file(paths[1], lone);
  EXPECT_THAT(
      message(lone), HasSubstr("this is part 1 of 3; its name must end with '-00002-of-00003.gguf'")
  );
  std::filesystem::copy_file(paths[1], paths[2], std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(message(paths[0]), HasSubstr("says that it is part 1 of 3; expected part 2 of 3"));
  std::filesystem::remove(paths[2]);
  EXPECT_THAT(message(paths[0]), HasSubstr("m-00003-of-00003.gguf"));
}

TEST_F(OpenCheckpoint, PartsHoldEveryTensorOnce) {
  const auto part = [](int64_t index, int64_t count, size_t tensors, Metadata metadata) {
    metadata.set("split.no", static_cast<uint16_t>(index));
    metadata.set("split.count", static_cast<uint16_t>(count));
    metadata.set("split.tensors.count", static_cast<int32_t>(tensors));
    return metadata;
  };
  const auto tensors = target_->tensors();
  const std::string first = directory_.file("n-00001-of-00002.gguf");
  const std::string second = directory_.file("n-00002-of-00002.gguf");
  test::write_gguf(first, part(0, 2, tensors.size(), target_->metadata), tensors.first(3));
  test::write_gguf(second, part(1, 2, tensors.size(), {}), tensors.subspan(3));
  ASSERT_EQ(message(first), "");
  test::write_gguf(second, part(1, 2, tensors.size(), {}), tensors.subspan(2));
  EXPECT_THAT(message(first), HasSubstr("is already in an earlier part"));
  test::write_gguf(second, part(1, 2, tensors.size(), {}), tensors.subspan(4));
  EXPECT_THAT(
      message(first),
      AllOf(
          HasSubstr(fmt::format("the parts hold {} tensors", tensors.size() - 1)),
          HasSubstr(fmt::format("split.tensors.count is {}", tensors.size()))
      )
  );
  test::write_gguf(first, part(2, 2, tensors.size(), target_->metadata), tensors);
  EXPECT_THAT(message(first), HasSubstr("impossible part number 2 of 2"));
}

TEST(ExpectedTensors, CountsOfTheRealModels) {
  Metadata e4b;
  e4b.set("general.architecture", std::string("gemma4"));
  const auto set = [&](const char* key, uint32_t value) { e4b.set(key, value); };
  set("gemma4.block_count", 42);
  set("gemma4.vocab_size", 262144);
  set("gemma4.context_length", 131072);
  set("gemma4.embedding_length", 2560);
  set("gemma4.feed_forward_length", 10240);
  set("gemma4.attention.head_count", 8);
  set("gemma4.attention.head_count_kv", 2);
  set("gemma4.attention.key_length", 512);
  set("gemma4.attention.key_length_swa", 256);
  set("gemma4.attention.sliding_window", 512);
  set("gemma4.attention.shared_kv_layers", 18);
  set("gemma4.embedding_length_per_layer_input", 256);
  std::vector<bool> pattern(42, true);
  for (size_t layer = 5; layer < pattern.size(); layer += 6) {
    pattern[layer] = false;
  }
  e4b.set("gemma4.attention.sliding_window_pattern", MetadataArray(pattern));
  e4b.set("gemma4.attention.layer_norm_rms_epsilon", 1e-6F);
  e4b.set("gemma4.rope.freq_base", 1e6F);
  e4b.set("gemma4.rope.freq_base_swa", 1e4F);

  int64_t used = 0;
  int64_t unused = 0;
  int64_t parameters = 0;
  for (const ExpectedTensor& tensor : expected_tensors(e4b)) {
    if (tensor.name == "output.weight") {
      continue;  // tied
    }
    (tensor.presence == TensorPresence::kUnused ? unused : used) += 1;
    int64_t size = 1;
    for (const int64_t dimension : tensor.shape) {
      size *= dimension == kAnyDimension ? 262144 : dimension;
    }
    if (tensor.presence != TensorPresence::kUnused && !tensor.hf_name.empty()) {
      parameters += size;
    }
  }
  EXPECT_EQ(used, 666);
  EXPECT_EQ(unused, 54);
  EXPECT_EQ(parameters, 7'463'013'418);
}

TEST(ExpectedTensors, CountsOfTheRealDrafter) {
  Metadata bolt;
  bolt.set("general.architecture", std::string("dflash"));
  const auto set = [&](const char* key, uint32_t value) { bolt.set(key, value); };
  set("dflash.block_count", 5);
  set("dflash.embedding_length", 2560);
  set("dflash.feed_forward_length", 5120);
  set("dflash.attention.head_count", 32);
  set("dflash.attention.head_count_kv", 8);
  set("dflash.attention.key_length", 128);
  set("dflash.vocab_size", 262144);
  set("dflash.block_size", 8);
  set("dflash.mask_token_id", 4);
  set("dflash.attention.sliding_window", 1024);
  bolt.set("dflash.target_layer_ids", MetadataArray(std::vector<uint32_t>{5, 11, 17, 23, 35}));
  bolt.set("dflash.attention.sliding_window_pattern", MetadataArray(std::vector<bool>(5, true)));
  bolt.set("dflash.attention.causal_pattern", MetadataArray(std::vector<bool>(5, false)));
  bolt.set("dflash.attention.layer_norm_rms_epsilon", 1e-6F);
  bolt.set("dflash.rope.freq_base", 1e6F);
  int64_t parameters = 0;
  const std::vector<ExpectedTensor> tensors = expected_tensors(bolt);
  for (const ExpectedTensor& tensor : tensors) {
    int64_t size = 1;
    for (const int64_t dimension : tensor.shape) {
      size *= dimension;
    }
    parameters += size;
  }
  EXPECT_EQ(tensors.size(), 59U);
  EXPECT_EQ(parameters, 1'031'568'640);
}

}  // namespace
}  // namespace octet
