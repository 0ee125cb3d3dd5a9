// Files of the GGUF writer, read by an independent reader: npm's @huggingface/gguf.

#include <filesystem>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/formats/gguf_reader.h"
#include "octet/formats/json_value.h"
#include "support/command_output.h"
#include "support/missing.h"
#include "support/random_models.h"
#include "support/temporary_directory.h"
#include "support/write_checkpoint.h"

namespace octet {
namespace {

const std::string kDirectory = OCTET_SOURCE_DIR "/tests/differential";

TEST(NpmGguf, ReadsOurFiles) {
  if (!std::filesystem::exists(kDirectory + "/node_modules/@huggingface/gguf")) {
    OCTET_NEEDS("@huggingface/gguf in " << kDirectory);
  }
  if (test::output_of("node --version 2>/dev/null").empty()) {
    OCTET_NEEDS("node");
  }
  const test::TemporaryDirectory directory;
  test::DFlashShape shape;
  shape.dtype = DType::kQ4_1;
  const std::shared_ptr<Checkpoint> model = test::make_dflash(shape, 7);
  model->metadata.set("test.text", std::string("line\n\u2581\U0001F999"));
  model->metadata.set("test.big", uint64_t{1} << 60U);
  model->metadata.set(
      "test.words", MetadataArray(std::vector<std::string_view>{"a", "", "\u2581b"})
  );
  model->metadata.set("test.float", 0.15625F);
  const std::string path = directory.file("model.gguf");
  test::write_gguf(path, model->metadata, model->tensors());

  const std::string json =
      test::output_of("cd '" + kDirectory + "' && node read_gguf.mjs '" + path + "'");
  ASSERT_FALSE(json.empty()) << "the reader refused the file";
  const JsonValue result = parse_json(test::bytes_of(json));
  const JsonValue* metadata = result.find("metadata");
  ASSERT_NE(metadata, nullptr);
  EXPECT_EQ(*metadata->find_string("general.architecture"), "dflash");
  EXPECT_EQ(metadata->find_integer("dflash.block_size"), 8);
  EXPECT_EQ(*metadata->find_string("test.text"), "line\n\u2581\U0001F999");
  EXPECT_EQ(*metadata->find_string("test.big"), "1152921504606846976");
  EXPECT_EQ(metadata->find_number("test.float"), 0.15625);
  const JsonArray* words = metadata->find_array("test.words");
  ASSERT_EQ(words->size(), 3U);
  EXPECT_EQ(*(*words)[2].string(), "\u2581b");
  for (const auto& [key, value] : model->metadata.entries()) {
    EXPECT_NE(metadata->find(key), nullptr) << key;
  }

  const GgufFile file = read_gguf(path);
  const JsonArray* infos = result.find_array("tensorInfos");
  ASSERT_EQ(infos->size(), file.tensors.size());
  for (size_t i = 0; i < file.tensors.size(); ++i) {
    const JsonValue& info = (*infos)[i];
    const GgufTensor& tensor = file.tensors[i];
    EXPECT_EQ(*info.find_string("name"), tensor.name);
    EXPECT_EQ(info.find_integer("dtype"), tensor.type_id);
    EXPECT_EQ(*info.find_string("offset"), std::to_string(tensor.offset));
    const JsonArray* shape_in_file = info.find_array("shape");
    ASSERT_EQ(shape_in_file->size(), tensor.shape.size());
    for (size_t d = 0; d < tensor.shape.size(); ++d) {
      EXPECT_EQ(
          *(*shape_in_file)[d].string(), std::to_string(tensor.shape[tensor.shape.size() - 1 - d])
      );
    }
  }
}

}  // namespace
}  // namespace octet
