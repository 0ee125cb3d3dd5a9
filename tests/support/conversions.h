// Converting checkpoints in tests: what `octet convert` does, without the command, models that only
// some conversions take, and the comparisons that say whether anything was lost.
#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "octet/base/thread_pool.h"
#include "octet/formats/open_checkpoint.h"
#include "octet/quantize/gguf_export.h"
#include "octet/quantize/hf_export.h"
#include "octet/quantize/portable_metadata.h"
#include "support/random_models.h"
#include "support/temporary_directory.h"

namespace octet::test {

inline std::shared_ptr<const Checkpoint> convert_to_gguf(
    const Checkpoint& source, const std::string& path, const Checkpoint* tokenizer = nullptr
) {
  ThreadPool pool(2);
  const CheckpointPlan plan = plan_gguf_copy(source);
  const PortableMetadata portable = gather_metadata(source, tokenizer);
  write_gguf_checkpoint({source, portable.metadata, plan, path}, pool, {});
  return open_checkpoint(path, UnusedTensors::kKeep);
}

inline std::shared_ptr<const Checkpoint> convert_to_hf(
    const Checkpoint& source,
    const std::string& path,
    int64_t shard_bytes = kDefaultShardBytes,
    BlockTypes block_types = BlockTypes::kRefuse
) {
  ThreadPool pool(2);
  const CheckpointPlan plan = plan_hf_copy(source, block_types);
  const PortableMetadata portable = gather_metadata(source, nullptr, TokenizerNeed::kOptional);
  write_hf_checkpoint({source, portable.metadata, plan, path}, shard_bytes, pool, {});
  return open_checkpoint(path, UnusedTensors::kKeep);
}

/// A file of the shipped pair with its block types decoded to BF16, below `directory`.
inline std::shared_ptr<const Checkpoint> decoded_shipped_model(
    const std::string& name, const TemporaryDirectory& directory
) {
  const auto source = open_checkpoint(OCTET_SOURCE_DIR "/models/bolt-tiny/" + name + ".gguf");
  return convert_to_hf(*source, directory.file(name), kDefaultShardBytes, BlockTypes::kDecode);
}

/// A drafter of NVFP4 whose rows are whole blocks of both layouts: of 16 values in folders, of 64
/// in GGUF.
inline DFlashShape nvfp4_shape() {
  DFlashShape shape;
  shape.dtype = DType::kNVFP4;
  shape.hidden = 64;
  shape.head_dim = 16;
  shape.feed_forward = 128;
  return shape;
}

/// `model`, which must outlive the result, with an input scale at every NVFP4 weight whose name
/// starts with `prefix`, and the algorithm that such mixtures have.
inline Checkpoint with_input_scales(const Checkpoint& model, std::string_view prefix) {
  Checkpoint mixed;
  mixed.metadata = model.metadata;
  mixed.metadata.set("general.quant_algo", std::string("MIXED_PRECISION"));
  for (LogicalTensor tensor : model.tensors()) {
    if (tensor.dtype == DType::kNVFP4 && tensor.name.starts_with(prefix)) {
      tensor.input_scale = 0.5F;
    }
    mixed.add(tensor);
  }
  return mixed;
}

/// The safetensors files of a folder.
inline std::vector<std::filesystem::path> shards_of(const std::string& folder) {
  std::vector<std::filesystem::path> shards;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".safetensors") {
      shards.push_back(entry.path());
    }
  }
  return shards;
}

/// Same tensors, bit by bit, in the same types and shapes.
inline void expect_same_tensors(const Checkpoint& expected, const Checkpoint& found) {
  EXPECT_EQ(expected.tensors().size(), found.tensors().size());
  for (const LogicalTensor& tensor : expected.tensors()) {
    SCOPED_TRACE(tensor.name);
    const LogicalTensor* other = found.find(tensor.name);
    ASSERT_NE(other, nullptr);
    EXPECT_EQ(dtype_facts(tensor.dtype).name, dtype_facts(other->dtype).name);
    EXPECT_EQ(tensor.shape, other->shape);
    EXPECT_TRUE(std::ranges::equal(tensor.data, other->data));
    EXPECT_TRUE(std::ranges::equal(tensor.block_scales, other->block_scales));
    EXPECT_EQ(tensor.scale, other->scale);
    EXPECT_EQ(tensor.input_scale, other->input_scale);
  }
}

/// Every key of `expected` whose name does not start with one of `except` has its value in `found`.
inline void expect_same_metadata(
    const Metadata& expected, const Metadata& found, const std::vector<std::string>& except = {}
) {
  for (const auto& [key, value] : expected.entries()) {
    const std::string& name = key;
    const bool skipped = std::any_of(except.begin(), except.end(), [&](const std::string& prefix) {
      return name.starts_with(prefix);
    });
    const MetadataValue* other = found.find(key);
    if (!skipped) {
      EXPECT_TRUE(other != nullptr && *other == value) << key;
    }
  }
}

/// A made-up tokenizer of `size` >= 16 pieces, with every type of token.
class SmallTokenizer {
 public:
  explicit SmallTokenizer(int64_t size) {
    pieces_ = {
        "<pad>",
        "<eos>",
        "<bos>",
        "<unk>",
        "<mask>",
        "<|turn>",
        "<turn|>",
        "<|channel>",
        "<unused0>",
        "<0x0A>",
        "a",
        "b",
        "ab",
        "\"\\\n\t",
        "\u2581",
        "\u2581a"};
    types_ = {3, 3, 3, 2, 3, 3, 3, 4, 5, 6, 1, 1, 1, 1, 1, 1};
    while (static_cast<int64_t>(pieces_.size()) < size) {
      pieces_.push_back(fmt::format("w{}", pieces_.size()));
      types_.push_back(1);
    }
  }

  /// The keys' strings point into this object.
  void add_to(Metadata& metadata) const {
    metadata.set("tokenizer.ggml.model", std::string("gemma4"));
    metadata.set("tokenizer.ggml.tokens", MetadataArray(views(pieces_)));
    metadata.set("tokenizer.ggml.token_type", MetadataArray(types_));
    metadata.set(
        "tokenizer.ggml.scores", MetadataArray(std::vector<float>(pieces_.size(), -1000.0F))
    );
    metadata.set("tokenizer.ggml.merges", MetadataArray(views(merges_)));
    metadata.set("tokenizer.ggml.bos_token_id", uint32_t{2});
    metadata.set("tokenizer.ggml.eos_token_id", uint32_t{1});
    metadata.set("tokenizer.ggml.eot_token_id", uint32_t{6});
    metadata.set("tokenizer.ggml.unknown_token_id", uint32_t{3});
    metadata.set("tokenizer.ggml.padding_token_id", uint32_t{0});
    metadata.set("tokenizer.ggml.add_space_prefix", false);
    metadata.set("tokenizer.ggml.add_bos_token", true);
    metadata.set("tokenizer.chat_template", std::string("{{ \"x\" }}\n\u2581{# \\ #}"));
  }

 private:
  static std::vector<std::string_view> views(const std::vector<std::string>& texts) {
    return {texts.begin(), texts.end()};
  }

  std::vector<std::string> pieces_;
  std::vector<int32_t> types_;
  std::vector<std::string> merges_ = {"a b", "\u2581 a"};
};

}  // namespace octet::test
