// Importance matrices at rest: both forms are read, one is written, hostile bytes are refused.

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/formats/gguf_writer.h"
#include "octet/quantize/importance.h"
#include "support/error_message.h"
#include "support/importance_seeds.h"
#include "support/random_models.h"
#include "support/temporary_directory.h"

namespace octet::test {
namespace {

ImportanceMatrix example() {
  ImportanceMatrix matrix;
  matrix.entries["blk.0.ffn_down.weight"] = {{2.0F, 0.0F, 6.0F}, 2};
  matrix.entries["blk.1.attn_q.weight"] = {{1.0F, 4.0F}, 0};
  matrix.datasets = {"a.txt", "b.txt"};
  matrix.chunk_count = 7;
  matrix.chunk_size = 256;
  return matrix;
}

TEST(Importance, ComesBackFromItsFile) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("i.gguf");
  write_importance(path, example());
  const ImportanceMatrix read = read_importance(path);
  ASSERT_EQ(read.entries.size(), 2U);
  const ImportanceEntry& entry = read.entries.at("blk.0.ffn_down.weight");
  EXPECT_THAT(entry.sum_squares, testing::ElementsAre(2.0F, 0.0F, 6.0F));
  EXPECT_EQ(entry.count, 2);
  EXPECT_THAT(entry.weights(), testing::ElementsAre(1.0F, 0.0F, 3.0F));
  EXPECT_THAT(read.entries.at("blk.1.attn_q.weight").weights(), testing::ElementsAre(1.0F, 1.0F))
      << "what was never seen matters evenly";
  EXPECT_EQ(read.datasets, example().datasets);
  EXPECT_EQ(read.chunk_count, 7);
  EXPECT_EQ(read.chunk_size, 256);
}

TEST(Importance, ReadsTheOlderForm) {
  const TemporaryDirectory directory;
  const ImportanceMatrix read = read_importance(directory.write("i.dat", legacy_importance()));
  EXPECT_THAT(read.entries.at("blk.0.ffn_up.weight").weights(), testing::ElementsAre(0.5F, 2.0F));
  EXPECT_EQ(read.chunk_count, 5);
  EXPECT_THAT(read.datasets, testing::ElementsAre("text.txt"));
}

TEST(Importance, RefusesEveryCutAndNumbersThatAreNone) {
  const TemporaryDirectory directory;
  const std::string whole = legacy_importance();
  const size_t entries_end = whole.size() - std::string("text.txt").size() - 8;
  for (size_t length = 0; length < entries_end; ++length) {
    const std::string path = directory.write("i.dat", whole.substr(0, length));
    EXPECT_THROW(read_importance(path), Error) << length;
  }
  write_importance(directory.file("i.gguf"), example());
  const std::string file = read_text(directory.file("i.gguf"));
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -1.0F, 1e38F * 10.0F}) {
    std::string damaged = file;
    const size_t at = damaged.find(std::string_view("\0\0\xc0\x40", 4));  // the sum of 6
    ASSERT_NE(at, std::string::npos);
    std::memcpy(damaged.data() + at, &bad, sizeof(bad));
    EXPECT_THROW(read_importance(directory.write("bad", damaged)), Error) << bad;
  }
  for (size_t length = 0; length < file.size() - 32; length += 7) {
    EXPECT_THROW(read_importance(directory.write("cut", file.substr(0, length))), Error);
  }
}

TEST(Importance, MutatedFilesGiveErrorsOrFiniteNumbers) {
  const TemporaryDirectory directory;
  write_importance(directory.file("i.gguf"), example());
  std::mt19937 random(7);
  for (const std::string& whole : {legacy_importance(), read_text(directory.file("i.gguf"))}) {
    for (int round = 0; round < 300; ++round) {
      std::string bytes = whole;
      for (int flips = 0; flips < 3; ++flips) {
        bytes[random() % bytes.size()] = static_cast<char>(random());
      }
      try {
        for (const auto& [name, entry] :
             parse_importance(std::as_bytes(std::span(bytes)), "mutated").entries) {
          for (const float weight : entry.weights()) {
            EXPECT_TRUE(std::isfinite(weight) && weight >= 0.0F) << name << " round " << round;
          }
        }
      } catch (const Error&) {
        continue;
      }
    }
  }
}

TEST(Importance, WritesNothingThatItWouldRefuseToRead) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("i.gguf");
  const auto refused = [&](auto change) {
    ImportanceMatrix matrix = example();
    change(matrix, matrix.entries.at("blk.1.attn_q.weight"));
    const std::string message = error_message([&] { write_importance(path, matrix); });
    return !message.empty() && !std::filesystem::exists(path);
  };
  EXPECT_TRUE(refused([](auto&, auto& entry) { entry.sum_squares[0] = HUGE_VALF; }));
  EXPECT_TRUE(refused([](auto&, auto& entry) { entry.sum_squares[0] = -1.0F; }));
  EXPECT_TRUE(refused([](auto&, auto& entry) { entry.count = int64_t{1} << 60; }));
  EXPECT_TRUE(refused([](auto&, auto& entry) { entry.count = -1; }));
  EXPECT_TRUE(refused([](auto& matrix, auto&) { matrix.chunk_count = -5; }));
  EXPECT_TRUE(refused([](auto& matrix, auto&) { matrix.chunk_count = int64_t{1} << 32; }));
  EXPECT_TRUE(refused([](auto& matrix, auto&) { matrix.chunk_size = int64_t{1} << 32; }));
  EXPECT_FALSE(refused([](auto&, auto&) {}));
}

TEST(Importance, RefusesCountsOfChunksThatAreNone) {
  std::string old = legacy_importance();
  const auto chunks = static_cast<int32_t>(-5);
  std::memcpy(old.data() + old.size() - std::string("text.txt").size() - 8, &chunks, 4);
  EXPECT_THAT(
      error_message([&] { parse_importance(bytes_of(old), "old"); }), testing::HasSubstr("is -5")
  );
  const TemporaryDirectory directory;
  for (const char* key : {"imatrix.chunk_count", "imatrix.chunk_size"}) {
    for (const int64_t number : {int64_t{-5}, int64_t{1} << 32}) {
      Metadata metadata;
      metadata.set("general.type", std::string("imatrix"));
      metadata.set("imatrix.chunk_count", uint32_t{7});
      metadata.set("imatrix.chunk_size", uint32_t{256});
      metadata.set(key, number);
      GgufWriter(directory.file("i.gguf"), metadata, std::vector<TensorSpec>{}).finish();
      EXPECT_THAT(
          error_message([&] { read_importance(directory.file("i.gguf")); }),
          testing::HasSubstr("unsigned 32-bit")
      ) << key
        << number;
    }
  }
}

TEST(Importance, OfTheOlderFormMayNotGrowOutOfFloats) {
  ImportanceMatrix matrix;
  matrix.counts_chunks = true;
  matrix.entries["blk.0.attn_q.weight"] = {{1e36F}, 1};
  EXPECT_THAT(
      error_message([&] { count_tokens(matrix, 512); }), testing::HasSubstr("blk.0.attn_q.weight")
  );
}

TEST(Importance, BelongsToAModelOfItsNamesAndWidths) {
  DFlashShape shape;
  const auto model = make_dflash(shape, 1);
  ImportanceMatrix matrix;
  std::vector<float>& sums = matrix.entries["blk.0.attn_q.weight"].sum_squares;
  sums.assign(static_cast<size_t>(shape.hidden), 1.0F);
  EXPECT_EQ(error_message([&] { require_importance_of(matrix, *model); }), "");
  sums.push_back(1.0F);
  EXPECT_THAT(
      error_message([&] { require_importance_of(matrix, *model); }),
      testing::HasSubstr("belongs to another model")
  );
  sums.pop_back();
  matrix.entries["blk.77.attn_q.weight"] = matrix.entries["blk.0.attn_q.weight"];
  EXPECT_THAT(
      error_message([&] { require_importance_of(matrix, *model); }),
      testing::HasSubstr("no such weight")
  );
}

TEST(Importance, AddsUp) {
  ImportanceMatrix sum = example();
  add_importance(sum, example());
  EXPECT_THAT(
      sum.entries.at("blk.0.ffn_down.weight").sum_squares, testing::ElementsAre(4.0F, 0.0F, 12.0F)
  );
  EXPECT_EQ(sum.entries.at("blk.0.ffn_down.weight").count, 4);
  EXPECT_EQ(sum.chunk_count, 14);
  ImportanceMatrix other = example();
  other.entries["blk.1.attn_q.weight"].sum_squares.push_back(1.0F);
  EXPECT_THROW(add_importance(sum, other), Error);
}

TEST(Importance, ChunksOfTheOlderFormWeighAsManyTokens) {
  const std::string file = legacy_importance();
  ImportanceMatrix old = parse_importance(std::as_bytes(std::span(file)), "old");
  const std::vector<float> before = old.entries.at("blk.0.ffn_up.weight").weights();
  const int64_t chunks = old.entries.at("blk.0.ffn_up.weight").count;
  count_tokens(old, 64);
  EXPECT_EQ(old.entries.at("blk.0.ffn_up.weight").count, 64 * chunks);
  EXPECT_EQ(old.entries.at("blk.0.ffn_up.weight").weights(), before);
  // As many tokens of other text weigh as much as the old ones do.
  ImportanceMatrix more;
  more.entries["blk.0.ffn_up.weight"] = {{static_cast<float>(64 * chunks), 0.0F}, 64 * chunks};
  add_importance(old, more);
  EXPECT_THAT(
      old.entries.at("blk.0.ffn_up.weight").weights(),
      testing::ElementsAre((before[0] + 1.0F) / 2.0F, before[1] / 2.0F)
  );
}

TEST(Importance, IsAttachedByNameAndRefusesAnotherModels) {
  DFlashShape shape;
  shape.dtype = DType::kBF16;
  const auto model = make_dflash(shape, 1);
  CheckpointPlan plan = plan_recipe(*model, find_recipe("Q4_0").value(), {});
  ImportanceMatrix matrix;
  matrix.entries["blk.0.attn_q.weight"] = {
      std::vector<float>(static_cast<size_t>(shape.hidden), 3.0F), 3};
  const AttachedImportance attached = attach_importance(plan, matrix);
  int with = 0;
  for (const PlannedTensor& planned : plan) {
    if (!planned.importance.empty()) {
      ++with;
      EXPECT_EQ(planned.source->name, "blk.0.attn_q.weight");
      EXPECT_EQ(planned.importance[0], 1.0F);
    }
  }
  EXPECT_EQ(with, 1);
  EXPECT_THAT(attached.without, testing::Contains("blk.1.attn_q.weight"));
  for (const char* idle : {"Q8_0", "MXFP4", "BF16"}) {
    CheckpointPlan other = plan_recipe(*model, find_recipe(idle).value(), {});
    EXPECT_THAT(
        error_message([&] { attach_importance(other, matrix); }),
        testing::HasSubstr("leave out --imatrix")
    ) << idle;
  }
  ImportanceMatrix foreign;
  foreign.entries["blk.77.attn_q.weight"] = matrix.entries["blk.0.attn_q.weight"];
  EXPECT_THAT(
      error_message([&] { attach_importance(plan, foreign); }), testing::HasSubstr("no entry")
  );
  matrix.entries["blk.0.attn_q.weight"].sum_squares.pop_back();
  EXPECT_THROW(attach_importance(plan, matrix), Error);
}

}  // namespace
}  // namespace octet::test
