// Every limit of the GGUF reader, each with a file that breaks exactly it, and what the user is
// told.

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/formats/gguf_reader.h"
#include "support/error_message.h"
#include "support/format_bytes.h"
#include "support/temporary_directory.h"

namespace octet {
namespace {

using test::Bytes;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kHuge = int64_t{1} << 40;
constexpr int32_t kF32 = 0;
constexpr int32_t kQ40 = 2;

std::string message_for(const Bytes& bytes) {
  return test::error_message([&] { parse_gguf(test::bytes_of(bytes.text()), "bad.gguf"); });
}

Bytes one_key(std::string_view name, int32_t type) {
  Bytes bytes;
  bytes.gguf_header(0, 1).key(name, type);
  return bytes;
}

Bytes one_tensor(
    const std::vector<int64_t>& sizes, int32_t type, uint64_t offset, size_t data_bytes
) {
  Bytes bytes;
  bytes.gguf_header(1, 0).tensor("t", sizes, type, offset).pad_to(32).zeros(data_bytes);
  return bytes;
}

TEST(GgufLimits, AcceptsTheSmallestFiles) {
  EXPECT_EQ(message_for(Bytes().gguf_header(0, 0)), "");
  EXPECT_EQ(message_for(Bytes().gguf_header(0, 0, 2)), "");
  EXPECT_EQ(message_for(one_tensor({3, 2}, kF32, 0, 24)), "");  // no padding after the last tensor
  EXPECT_EQ(
      message_for(one_tensor({3, 2}, kF32, 0, 1000)), ""
  );  // trailing bytes are nobody's business
}

TEST(GgufLimits, NamesTheFileInEveryMessage) {
  EXPECT_THAT(
      message_for(Bytes().raw("GG")), StartsWith("bad.gguf: the file ends inside the magic number")
  );
}

TEST(GgufLimits, MagicVersionAndByteOrder) {
  EXPECT_THAT(message_for(Bytes().raw("GGML").zeros(20)), HasSubstr("not a GGUF file"));
  EXPECT_THAT(message_for(Bytes().raw("FUGG").zeros(20)), HasSubstr("big-endian"));
  EXPECT_THAT(message_for(Bytes().gguf_header(0, 0, 3U << 24U)), HasSubstr("big-endian"));
  for (const uint32_t version : {0U, 1U, 4U}) {
    EXPECT_THAT(message_for(Bytes().gguf_header(0, 0, version)), HasSubstr("expected 2 or 3"))
        << version;
  }
}

TEST(GgufLimits, Counts) {
  EXPECT_THAT(
      message_for(Bytes().gguf_header(0, kHuge)),
      AllOf(HasSubstr("metadata keys"), HasSubstr("0 to 65536"))
  );
  EXPECT_THAT(
      message_for(Bytes().gguf_header(kHuge, 0)),
      AllOf(HasSubstr("tensors"), HasSubstr("0 to 65536"))
  );
  EXPECT_THAT(message_for(Bytes().gguf_header(-1, 0)), HasSubstr("announces -1 tensors"));
  EXPECT_THAT(message_for(Bytes().gguf_header(0, -1)), HasSubstr("announces -1 metadata keys"));
  EXPECT_THAT(
      message_for(Bytes().gguf_header(0, 1000)),
      HasSubstr("1000 metadata keys, but only 0 bytes follow")
  );
  EXPECT_THAT(
      message_for(Bytes().gguf_header(1000, 0)), HasSubstr("1000 tensors, but only 8 bytes follow")
  );
}

TEST(GgufLimits, Keys) {
  EXPECT_THAT(message_for(one_key("", 4).put(1U)), HasSubstr("metadata key 0 has 0 bytes"));
  EXPECT_THAT(
      message_for(one_key(std::string(2000, 'k'), 4).put(1U)),
      HasSubstr("has 2000 bytes; expected 1 to 1024")
  );
  EXPECT_THAT(
      message_for(one_key("caf\xE9", 4).put(1U)),
      HasSubstr("metadata key 0 is not valid UTF-8: 'caf\\xe9'")
  );
  EXPECT_THAT(
      message_for(Bytes().gguf_header(0, 2).key("twice", 4).put(1U).key("twice", 4).put(1U)),
      HasSubstr("metadata key 'twice' is there twice")
  );
  EXPECT_THAT(
      message_for(Bytes().gguf_header(0, 1).put(kHuge).zeros(20)),
      HasSubstr("the file ends inside metadata key 0")
  );
}

TEST(GgufLimits, ValuesNameTheKey) {
  EXPECT_THAT(
      message_for(one_key("k", 13).put(1U)), HasSubstr("metadata key 'k': unknown value type 13")
  );
  EXPECT_THAT(message_for(one_key("k", -1).put(1U)), HasSubstr("unknown value type -1"));
  EXPECT_THAT(
      message_for(one_key("k", 10).put(1U)),
      HasSubstr(
          "metadata key 'k': the file ends inside the value (byte 37: 8 bytes expected, 4 remain)"
      )
  );
  EXPECT_THAT(
      message_for(one_key("k", 8).put(uint64_t{1} << 30U)),
      HasSubstr("metadata key 'k': the file ends inside")
  );
  EXPECT_THAT(message_for(one_key("k", 8).put(~uint64_t{0})), HasSubstr("the file ends inside"));
}

TEST(GgufLimits, Arrays) {
  EXPECT_THAT(message_for(one_key("k", 9).put(9).put(uint64_t{1})), HasSubstr("array of arrays"));
  EXPECT_THAT(
      message_for(one_key("k", 9).put(99).put(uint64_t{1})),
      HasSubstr("unknown array element type 99")
  );
  EXPECT_THAT(
      message_for(one_key("k", 9).put(4).put(kHuge)), HasSubstr("at most 1073741824 are allowed")
  );
  EXPECT_THAT(
      message_for(one_key("k", 9).put(10).put(uint64_t{1} << 30U)),
      HasSubstr("the file ends inside the array")
  );
  EXPECT_THAT(
      message_for(one_key("k", 9).put(8).put(uint64_t{1} << 29U).zeros(64)),
      HasSubstr("the file ends inside the array of strings")
  );
  EXPECT_THAT(
      message_for(one_key("k", 9).put(8).put(uint64_t{2}).string("a").put(uint64_t{50})),
      HasSubstr("the file ends inside a string of the array")
  );
}

TEST(GgufLimits, Alignment) {
  EXPECT_THAT(
      message_for(one_key("general.alignment", 4).put(48U)),
      HasSubstr("'general.alignment' is 48; expected a power")
  );
  EXPECT_THAT(
      message_for(one_key("general.alignment", 4).put(0U)), HasSubstr("'general.alignment' is 0")
  );
  EXPECT_THAT(
      message_for(one_key("general.alignment", 5).put(32)), HasSubstr("must be a u32, found i32")
  );
  Bytes large;
  large.gguf_header(1, 1).key("general.alignment", 4).put(1U << 31U).tensor("t", {1}, kF32, 0);
  EXPECT_THAT(message_for(large), HasSubstr("do not fit into the 0 bytes of tensor data"));
}

TEST(GgufLimits, TensorNames) {
  const auto named = [](std::string_view name) {
    Bytes bytes;
    bytes.gguf_header(1, 0).tensor(name, {1}, kF32, 0).pad_to(32).zeros(4);
    return bytes;
  };
  EXPECT_THAT(message_for(named("")), HasSubstr("the name of tensor 0 has 0 bytes"));
  EXPECT_THAT(message_for(named(std::string(1025, 'n'))), HasSubstr("has 1025 bytes"));
  EXPECT_THAT(message_for(named("\xFFx")), HasSubstr("the name of tensor 0 is not valid UTF-8"));
  Bytes twice;
  twice.gguf_header(2, 0).tensor("t", {1}, kF32, 0).tensor("t", {1}, kF32, 32).pad_to(32).zeros(64);
  EXPECT_THAT(message_for(twice), HasSubstr("tensor 't' is there twice"));
}

TEST(GgufLimits, TensorShapes) {
  EXPECT_THAT(
      message_for(one_tensor({0}, kF32, 0, 32)),
      HasSubstr("tensor 't': dimension 0 is 0; expected at least 1")
  );
  EXPECT_THAT(message_for(one_tensor({-4}, kF32, 0, 32)), HasSubstr("dimension 0 is -4"));
  EXPECT_THAT(
      message_for(one_tensor({1, 1, 1, 1, 1}, kF32, 0, 32)), HasSubstr("5 dimensions; at most 4")
  );
  Bytes many;
  many.gguf_header(1, 0).string("t").put(0xFFFFFFFFU).zeros(64);
  EXPECT_THAT(message_for(many), HasSubstr("4294967295 dimensions; at most 4"));
  EXPECT_THAT(
      message_for(one_tensor({INT64_MAX, 2}, kF32, 0, 32)),
      HasSubstr("the product of the dimensions overflows")
  );
  EXPECT_THAT(
      message_for(one_tensor({(kHuge << 2) + 1, 1 << 22}, kF32, 0, 32)), HasSubstr("overflows")
  );
  EXPECT_THAT(message_for(one_tensor({INT64_MAX / 2}, kF32, 0, 32)), HasSubstr("overflows"));
  EXPECT_THAT(
      message_for(one_tensor({33}, kQ40, 0, 64)),
      HasSubstr("a row of 33 values is not a whole number of Q4_0 blocks of 32")
  );
}

TEST(GgufLimits, TensorTypes) {
  for (const int32_t removed : {4, 5, 31, 32, 33, 36, 37, 38, 43, -1, 1000}) {
    EXPECT_THAT(
        message_for(one_tensor({256}, removed, 0, 1024)),
        HasSubstr("tensor 't': unknown or removed tensor type")
    ) << removed;
  }
  EXPECT_EQ(message_for(one_tensor({256}, 16, 0, 66)), "") << "IQ2_XXS is legal in the container";
}

TEST(GgufLimits, TensorRanges) {
  EXPECT_THAT(
      message_for(one_tensor({8}, kF32, 7, 64)),
      HasSubstr("tensor 't': offset 7 is not a multiple of the alignment 32")
  );
  EXPECT_THAT(
      message_for(one_tensor({8}, kF32, 0, 31)),
      AllOf(
          HasSubstr("tensor 't': 32 bytes at offset 0 do not fit into the 31 bytes"),
          HasSubstr("truncated")
      )
  );
  EXPECT_THAT(message_for(one_tensor({8}, kF32, ~uint64_t{31}, 64)), HasSubstr("do not fit"));
  Bytes overlapping;
  overlapping.gguf_header(2, 0)
      .tensor("first", {16}, kF32, 0)
      .tensor("second", {8}, kF32, 32)
      .pad_to(32)
      .zeros(128);
  EXPECT_THAT(
      message_for(overlapping), HasSubstr("tensors 'first' and 'second' overlap at offset 32")
  );
}

TEST(GgufLimits, TruncationAnywhereIsAnError) {
  Bytes whole;
  whole.gguf_header(1, 2)
      .key("a", 8)
      .string("text")
      .key("b", 9)
      .put(5)
      .put(uint64_t{3})
      .put(1)
      .put(2)
      .put(3);
  whole.tensor("t", {8}, kF32, 0).pad_to(32).zeros(32);
  ASSERT_EQ(message_for(whole), "");
  for (size_t length = 0; length < whole.text().size(); ++length) {
    EXPECT_NE(message_for(Bytes().raw(whole.text().substr(0, length))), "") << length;
  }
}

TEST(GgufReader, ReadsMetadataAndShapes) {
  Bytes bytes;
  bytes.gguf_header(1, 3)
      .key("s", 8)
      .string("text")
      .key("flags", 9)
      .put(7)
      .put(uint64_t{2})
      .put('\0')
      .put('\2');
  bytes.key("words", 9).put(8).put(uint64_t{2}).string("one").string("two");
  bytes.tensor("t", {3, 2}, kF32, 0).pad_to(32);
  for (float value = 1.0F; value <= 6.0F; ++value) {
    bytes.put(value);
  }
  const GgufFile file = parse_gguf(test::bytes_of(bytes.text()), "good.gguf");
  EXPECT_EQ(file.metadata.string("s"), "text");
  EXPECT_EQ(file.metadata.find_integers("flags"), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(*file.metadata.find_strings("words"), (std::vector<std::string_view>{"one", "two"}));
  ASSERT_EQ(file.tensors.size(), 1U);
  EXPECT_EQ(file.tensors[0].shape, (std::vector<int64_t>{2, 3}));
  float last = 0.0F;
  std::memcpy(&last, file.tensors[0].data.data() + 20, sizeof(last));
  EXPECT_EQ(last, 6.0F);
}

}  // namespace
}  // namespace octet
