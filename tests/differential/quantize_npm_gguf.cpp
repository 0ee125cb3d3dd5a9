// Converted checkpoints and importance, read by an independent reader of GGUF: npm's
// @huggingface/gguf.

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/formats/gguf_reader.h"
#include "octet/formats/json_value.h"
#include "octet/quantize/importance.h"
#include "support/command_output.h"
#include "support/conversions.h"
#include "support/missing.h"
#include "support/random_models.h"
#include "support/temporary_directory.h"
#include "support/write_checkpoint.h"

namespace octet::test {
namespace {

const std::string kDirectory = OCTET_SOURCE_DIR "/tests/differential";

bool reader_is_installed() {
  return std::filesystem::exists(kDirectory + "/node_modules/@huggingface/gguf") &&
         !output_of("node --version 2>/dev/null").empty();
}

/// What the other reader finds in a file; holds its tensors against those that octet finds.
JsonValue read_by_npm(const std::string& path) {
  const std::string json =
      output_of("cd '" + kDirectory + "' && node read_gguf.mjs '" + path + "'");
  EXPECT_FALSE(json.empty()) << "the reader refused the file";
  JsonValue result = parse_json(bytes_of(json));
  const GgufFile file = read_gguf(path);
  const JsonArray* infos = result.find_array("tensorInfos");
  EXPECT_EQ(infos->size(), file.tensors.size());
  for (size_t i = 0; i < file.tensors.size(); ++i) {
    EXPECT_EQ(*(*infos)[i].find_string("name"), file.tensors[i].name);
    EXPECT_EQ((*infos)[i].find_integer("dtype"), file.tensors[i].type_id);
  }
  return result;
}

std::vector<int64_t> integers(const JsonValue& metadata, const char* key) {
  std::vector<int64_t> result;
  const JsonArray* values = metadata.find_array(key);
  for (size_t i = 0; values != nullptr && i < values->size(); ++i) {
    const JsonValue& value = (*values)[i];
    result.push_back(value.integer() ? *value.integer() : value.boolean() == true ? 1 : 0);
  }
  return result;
}

/// The model with a small tokenizer, as a folder and then as the GGUF file whose path is returned.
std::string converted_there_and_back(
    const TemporaryDirectory& directory, Checkpoint& model, int64_t vocabulary
) {
  const SmallTokenizer tokenizer(vocabulary);
  tokenizer.add_to(model.metadata);
  write_gguf(directory.file("source.gguf"), model.metadata, model.tensors());
  const auto source = open_checkpoint(directory.file("source.gguf"));
  const auto folder = convert_to_hf(*source, directory.file("folder"));
  convert_to_gguf(*folder, directory.file("converted.gguf"));
  return directory.file("converted.gguf");
}

TEST(NpmGguf, ReadsConvertedFolders) {
  if (!reader_is_installed()) {
    OCTET_NEEDS("node, or @huggingface/gguf in " << kDirectory);
  }
  const TemporaryDirectory directory;
  const GemmaShape shape;
  const auto model = make_gemma(shape, 3);
  const std::string path = converted_there_and_back(directory, *model, shape.vocabulary);
  const JsonValue result = read_by_npm(path);
  const JsonValue* metadata = result.find("metadata");
  ASSERT_NE(metadata, nullptr);
  EXPECT_EQ(*metadata->find_string("general.architecture"), "gemma4");
  EXPECT_EQ(metadata->find_integer("gemma4.feed_forward_length"), 48);
  EXPECT_EQ(metadata->find_array("tokenizer.ggml.tokens")->size(), 64U);
}

TEST(NpmGguf, ReadsConvertedDrafters) {
  if (!reader_is_installed()) {
    OCTET_NEEDS("node, or @huggingface/gguf in " << kDirectory);
  }
  const TemporaryDirectory directory;
  DFlashShape shape;
  shape.taps = {0, 2, 5};
  shape.windowed = {true, false};
  shape.causal = {true, false};
  const auto model = make_dflash(shape, 3);
  const std::string path = converted_there_and_back(directory, *model, shape.vocabulary);
  const JsonValue result = read_by_npm(path);
  const JsonValue* metadata = result.find("metadata");
  ASSERT_NE(metadata, nullptr);
  EXPECT_EQ(*metadata->find_string("general.architecture"), "dflash");
  EXPECT_EQ(integers(*metadata, "dflash.target_layers"), (std::vector<int64_t>{1, 3, 6}))
      << "the layers whose inputs are tapped";
  EXPECT_EQ(metadata->find_integer("dflash.attention.sliding_window"), 16);
  EXPECT_EQ(
      integers(*metadata, "dflash.attention.sliding_window_pattern"), (std::vector<int64_t>{1, 0})
  );
  EXPECT_EQ(metadata->find_integer("dflash.block_size"), 8);
  EXPECT_EQ(metadata->find_integer("tokenizer.ggml.mask_token_id"), 4);
}

TEST(NpmGguf, ReadsImportance) {
  if (!reader_is_installed()) {
    OCTET_NEEDS("node, or @huggingface/gguf in " << kDirectory);
  }
  const TemporaryDirectory directory;
  ImportanceMatrix matrix;
  matrix.entries["blk.0.ffn_down.weight"] = {{2.0F, 0.0F, 6.0F}, 2};
  matrix.datasets = {"a.txt", "b.txt"};
  matrix.chunk_count = 7;
  matrix.chunk_size = 256;
  const std::string path = directory.file("importance.gguf");
  write_importance(path, matrix);
  const JsonValue result = read_by_npm(path);
  const JsonValue* metadata = result.find("metadata");
  ASSERT_NE(metadata, nullptr);
  EXPECT_EQ(*metadata->find_string("general.type"), "imatrix");
  EXPECT_EQ(metadata->find_array("imatrix.datasets")->size(), 2U);
  EXPECT_EQ(metadata->find_integer("imatrix.chunk_count"), 7);
  EXPECT_EQ(metadata->find_integer("imatrix.chunk_size"), 256);
  const JsonArray& infos = *result.find_array("tensorInfos");
  ASSERT_EQ(infos.size(), 2U);
  EXPECT_EQ(*infos[0].find_string("name"), "blk.0.ffn_down.weight.in_sum2");
  EXPECT_EQ(*infos[1].find_string("name"), "blk.0.ffn_down.weight.counts");
}

}  // namespace
}  // namespace octet::test
