#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/formats/draft_head_file.h"
#include "octet/formats/open_checkpoint.h"
#include "support/error_message.h"
#include "support/temporary_directory.h"
#include "support/write_checkpoint.h"

namespace octet {
namespace {

using testing::HasSubstr;

const std::vector<float> kValues = {1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F};

DraftHeadContents contents() {
  DraftHeadContents head;
  head.metadata.set("general.architecture", std::string("octet-draft-head"));
  head.metadata.set("draft_head.tokens", MetadataArray(std::vector<uint32_t>{3, 9}));
  head.tensor = "draft_head.weight";
  head.dtype = DType::kF32;
  head.shape = {2, 3};
  head.data = std::as_bytes(std::span(kValues));
  return head;
}

TEST(DraftHeadFile, ReadsWhatItWrote) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.file("head.gguf");
  write_draft_head(path, contents());
  const auto read = open_draft_head(path);
  EXPECT_EQ(read->path, path);
  EXPECT_EQ(read->architecture(), "octet-draft-head");
  EXPECT_EQ(read->metadata.find_integers("draft_head.tokens"), (std::vector<int64_t>{3, 9}));
  const LogicalTensor& tensor = read->at("draft_head.weight");
  EXPECT_EQ(tensor.shape, (std::vector<int64_t>{2, 3}));
  ASSERT_EQ(tensor.data.size(), kValues.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(tensor.data.data(), kValues.data(), tensor.data.size()), 0);
}

TEST(DraftHeadFile, RefusesOtherFiles) {
  const test::TemporaryDirectory directory;
  EXPECT_THAT(
      test::error_message([&] { open_draft_head(directory.file("none.gguf")); }),
      HasSubstr("none.gguf")
  );
  const std::string path = directory.file("two.gguf");
  LogicalTensor tensor;
  tensor.name = "a";
  tensor.shape = {2, 3};
  tensor.data = std::as_bytes(std::span(kValues));
  LogicalTensor other = tensor;
  other.name = "b";
  const std::vector<LogicalTensor> both = {tensor, other};
  test::write_gguf(path, contents().metadata, both);
  EXPECT_THAT(
      test::error_message([&] { open_draft_head(path); }), HasSubstr("has one tensor, this file 2")
  );
  write_draft_head(path, contents());
  EXPECT_THAT(test::error_message([&] { open_checkpoint(path); }), HasSubstr("octet-draft-head"));
}

}  // namespace
}  // namespace octet
