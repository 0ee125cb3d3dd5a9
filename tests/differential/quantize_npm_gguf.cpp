// A converted checkpoint, read by an independent reader of GGUF: npm's @huggingface/gguf.

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "octet/formats/gguf_reader.h"
#include "octet/formats/json_value.h"
#include "support/command_output.h"
#include "support/conversions.h"
#include "support/missing.h"
#include "support/random_models.h"
#include "support/temporary_directory.h"
#include "support/write_checkpoint.h"

namespace octet::test {
namespace {

const std::string kDirectory = OCTET_SOURCE_DIR "/tests/differential";

TEST(NpmGguf, ReadsConvertedFolders) {
  if (!std::filesystem::exists(kDirectory + "/node_modules/@huggingface/gguf") ||
      output_of("node --version 2>/dev/null").empty()) {
    OCTET_NEEDS("node, or @huggingface/gguf in " << kDirectory);
  }
  const TemporaryDirectory directory;
  const GemmaShape shape;
  const auto model = make_gemma(shape, 3);
  const SmallTokenizer tokenizer(shape.vocabulary);
  tokenizer.add_to(model->metadata);
  write_gguf(directory.file("source.gguf"), model->metadata, model->tensors());
  const auto source = open_checkpoint(directory.file("source.gguf"));
  const auto folder = convert_to_hf(*source, directory.file("folder"));
  const std::string path = directory.file("model.gguf");
  convert_to_gguf(*folder, path);
  const std::string json =
      output_of("cd '" + kDirectory + "' && node read_gguf.mjs '" + path + "'");
  ASSERT_FALSE(json.empty()) << "the reader refused the file";
  const JsonValue result = parse_json(bytes_of(json));
  const JsonValue* metadata = result.find("metadata");
  ASSERT_NE(metadata, nullptr);
  EXPECT_EQ(*metadata->find_string("general.architecture"), "gemma4");
  EXPECT_EQ(metadata->find_integer("gemma4.feed_forward_length"), 48);
  EXPECT_EQ(metadata->find_array("tokenizer.ggml.tokens")->size(), 64U);
  const GgufFile file = read_gguf(path);
  const JsonArray* infos = result.find_array("tensorInfos");
  ASSERT_EQ(infos->size(), file.tensors.size());
  for (size_t i = 0; i < file.tensors.size(); ++i) {
    EXPECT_EQ(*(*infos)[i].find_string("name"), file.tensors[i].name);
    EXPECT_EQ((*infos)[i].find_integer("dtype"), file.tensors[i].type_id);
  }
}

}  // namespace
}  // namespace octet::test
