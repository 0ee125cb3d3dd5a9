// Checkpoints hold each tensor once, find it by name, and give file pages back without losing the
// bytes.
#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/tensor/checkpoint.h"
#include "octet/tensor/dtype.h"
#include "support/random_checkpoint.h"

namespace octet {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Checkpoint, FindsTensorsByName) {
  Checkpoint checkpoint;
  for (int i = 0; i < 100; ++i) {
    const std::string name = "blk." + std::to_string(i) + ".attn_q.weight";
    test::add_tensor(
        checkpoint, test::random_tensor(name, DType::kF32, {2, 3}, static_cast<uint64_t>(i), 1.0F)
    );
  }
  EXPECT_EQ(checkpoint.tensors().size(), 100U);
  EXPECT_EQ(checkpoint.at("blk.42.attn_q.weight").name, "blk.42.attn_q.weight");
  EXPECT_EQ(checkpoint.find("blk.42.attn_q"), nullptr);
}

TEST(Checkpoint, RefusesASecondTensorOfTheSameName) {
  Checkpoint checkpoint;
  checkpoint.path = "model.gguf";
  test::add_tensor(checkpoint, test::random_tensor("a", DType::kF32, {2}, 1, 1.0F));
  try {
    test::add_tensor(checkpoint, test::random_tensor("a", DType::kF16, {2}, 1, 1.0F));
    FAIL() << "the duplicate was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMalformed);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("model.gguf"), HasSubstr("'a'")));
  }
  EXPECT_EQ(checkpoint.at("a").dtype, DType::kF32);
}

TEST(Checkpoint, NamesTheMissingTensorAndTheFile) {
  Checkpoint checkpoint;
  checkpoint.path = "model.gguf";
  try {
    static_cast<void>(checkpoint.at("output.weight"));
    FAIL() << "a missing tensor was found";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kNotFound);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("model.gguf"), HasSubstr("'output.weight'")));
  }
}

TEST(Checkpoint, DroppedPagesReadTheSameBytes) {
  const std::string path = testing::TempDir() + "octet_checkpoint_pages.bin";
  const std::vector<float> values = test::random_values(1 << 16, 5, 1.0F);
  std::ofstream(path, std::ios::binary)
      .write(
          reinterpret_cast<const char*>(values.data()),
          static_cast<std::streamsize>(values.size() * sizeof(float))
      );
  Checkpoint checkpoint;
  checkpoint.files.push_back(MappedFile::open(path));
  LogicalTensor mapped;
  mapped.name = "mapped";
  mapped.shape = {1 << 6, 1 << 10};
  mapped.data = checkpoint.files[0]->bytes();
  checkpoint.add(mapped);
  test::add_tensor(checkpoint, test::random_tensor("in memory", DType::kF32, {4}, 1, 1.0F));
  const std::vector<std::byte> in_memory(
      checkpoint.at("in memory").data.begin(), checkpoint.at("in memory").data.end()
  );

  checkpoint.drop_pages(checkpoint.at("mapped"));
  checkpoint.drop_pages(checkpoint.at("in memory"));

  std::vector<float> decoded(values.size());
  decode_rows(checkpoint.at("mapped"), 0, 1 << 6, decoded.data());
  EXPECT_EQ(decoded, values);
  EXPECT_TRUE(std::ranges::equal(in_memory, checkpoint.at("in memory").data));
}

TEST(LogicalTensor, CountsRowsAndColumns) {
  LogicalTensor tensor;
  EXPECT_EQ(tensor.rows(), 1);
  EXPECT_EQ(tensor.cols(), 1);
  EXPECT_EQ(tensor.elements(), 1);
  tensor.shape = {7};
  EXPECT_EQ(tensor.rows(), 1);
  EXPECT_EQ(tensor.cols(), 7);
  tensor.shape = {2, 3, 5};
  EXPECT_EQ(tensor.rows(), 6);
  EXPECT_EQ(tensor.cols(), 5);
  EXPECT_EQ(tensor.elements(), 30);
}

TEST(DType, NamesAndGgufIdsLeadBackToTheType) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const DTypeFacts& facts = dtype_facts(dtype);
    std::string lower(facts.name);
    std::ranges::transform(lower, lower.begin(), [](char c) {
      return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    });
    EXPECT_EQ(dtype_from_name(facts.name), dtype) << facts.name;
    EXPECT_EQ(dtype_from_name(lower), dtype) << facts.name;
    if (facts.gguf_id >= 0) {
      EXPECT_EQ(dtype_from_gguf_id(facts.gguf_id), dtype) << facts.name;
    }
  }
  EXPECT_EQ(dtype_from_name("Q4_"), std::nullopt);
  EXPECT_EQ(dtype_from_name("Q4_KK"), std::nullopt);
  EXPECT_EQ(dtype_from_gguf_id(-1), std::nullopt);
  EXPECT_EQ(dtype_from_gguf_id(4), std::nullopt);
  EXPECT_EQ(dtype_from_gguf_id(int64_t{1} << 40), std::nullopt);
}

TEST(DType, RowBytesFollowTheBlockSizesOfTheFormats) {
  EXPECT_EQ(row_bytes(DType::kF32, 1024), 4096);
  EXPECT_EQ(row_bytes(DType::kQ8_0, 1024), 1088);
  EXPECT_EQ(row_bytes(DType::kQ4_1, 1024), 640);
  EXPECT_EQ(row_bytes(DType::kQ4K, 1024), 576);
  EXPECT_EQ(row_bytes(DType::kQ6K, 1024), 840);
  EXPECT_EQ(row_bytes(DType::kIQ4XS, 1024), 544);
  EXPECT_EQ(row_bytes(DType::kMXFP4, 1024), 544);
  EXPECT_EQ(row_bytes(DType::kNVFP4, 1024), 576);
  EXPECT_EQ(row_bytes(DType::kNVFP4ModelOpt, 1024), 512);
  EXPECT_EQ(row_bytes(DType::kQ4K, int64_t{256} << 40), int64_t{144} << 40);
}

TEST(DTypeDeathTest, RowsAreWholeBlocks) {
  EXPECT_DEATH(static_cast<void>(row_bytes(DType::kQ4K, 128)), "internal error");
}

}  // namespace
}  // namespace octet
