// Folders written here, read by an independent reader of safetensors that knows the format's
// description alone: headers, offsets, the index, bytes, and both quantization configs field by
// field.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/formats/canonical_metadata.h"
#include "octet/formats/json_value.h"
#include "octet/formats/safetensors_reader.h"
#include "support/command_output.h"
#include "support/conversions.h"
#include "support/missing.h"
#include "support/random_models.h"
#include "support/temporary_directory.h"

namespace octet::test {
namespace {

bool node_is_installed() {
  return !output_of("node --version 2>/dev/null").empty();
}

int64_t fnv1a(std::span<const std::byte> bytes) {
  uint32_t hash = 0x811c9dc5U;
  for (const std::byte byte : bytes) {
    hash = (hash ^ static_cast<uint32_t>(byte)) * 0x01000193U;
  }
  return hash;
}

/// Holds what the reader finds in a folder against what octet reads. The number of tensors.
int64_t read_by_both(const std::string& folder) {
  const std::string json = output_of(
      "node '" OCTET_SOURCE_DIR "/tests/differential/read_safetensors.mjs' '" + folder + "'"
  );
  EXPECT_FALSE(json.empty()) << "the reader refused the folder";
  if (json.empty()) {
    return 0;
  }
  const JsonValue found = parse_json(bytes_of(json));
  int64_t count = 0;
  for (const std::filesystem::path& shard : shards_of(folder)) {
    const SafetensorsFile file = read_safetensors(shard.string());
    for (const SafetensorsTensor& tensor : file.tensors) {
      SCOPED_TRACE(tensor.name);
      const JsonValue* other = found.find(tensor.name);
      EXPECT_NE(other, nullptr);
      if (other != nullptr) {
        EXPECT_EQ(*other->find_string("dtype"), tensor.dtype);
        EXPECT_EQ(*other->find_string("file"), shard.filename().string());
        EXPECT_EQ(other->find_integer("digest"), fnv1a(tensor.data));
      }
      ++count;
    }
  }
  EXPECT_EQ(std::ssize(*found.object()), count);
  return count;
}

TEST(SafetensorsByNode, ReadsTargetsInShards) {
  if (!node_is_installed()) {
    OCTET_NEEDS("node");
  }
  const TemporaryDirectory directory;
  GemmaShape shape;
  shape.dtype = DType::kBF16;
  const auto model = make_gemma(shape, 3);
  canonicalise_gemma4(model->metadata, shape.vocabulary);
  convert_to_hf(*model, directory.file("whole"));
  convert_to_hf(*model, directory.file("shards"), 20'000);
  EXPECT_GT(read_by_both(directory.file("whole")), 30);
  EXPECT_EQ(read_by_both(directory.file("shards")), read_by_both(directory.file("whole")));
  EXPECT_TRUE(std::filesystem::exists(directory.file("shards/model.safetensors.index.json")));
}

TEST(SafetensorsByNode, ReadsNvfp4WithAllSomeOrNoInputScales) {
  if (!node_is_installed()) {
    OCTET_NEEDS("node");
  }
  const auto model = make_dflash(nvfp4_shape(), 1);
  const std::string first = "blk.0.";
  for (const std::string& calibrated : {std::string("none"), first, std::string()}) {
    SCOPED_TRACE("input scales of '" + calibrated + "'");
    const TemporaryDirectory directory;
    const Checkpoint source = with_input_scales(*model, calibrated);
    convert_to_hf(source, directory.file("hf"), calibrated == first ? 8'000 : 1 << 30);
    EXPECT_GT(read_by_both(directory.file("hf")), 50);
  }
}

TEST(SafetensorsByNode, ReadsNvfp4BesideOtherWeights) {
  if (!node_is_installed()) {
    OCTET_NEEDS("node");
  }
  const TemporaryDirectory directory;
  DFlashShape shape;
  shape.dtype = DType::kBF16;
  shape.own_head = true;
  const auto model = make_dflash(shape, 1);
  ThreadPool pool(1);
  const std::vector<std::string> excluded = {"fc", "blk.1.*"};
  const CheckpointPlan plan = plan_hf_nvfp4(*model, excluded);
  write_hf_checkpoint(
      {*model, model->metadata, plan, directory.file("hf")}, kDefaultShardBytes, pool, {}
  );
  EXPECT_GT(read_by_both(directory.file("hf")), 30);
}

}  // namespace
}  // namespace octet::test
