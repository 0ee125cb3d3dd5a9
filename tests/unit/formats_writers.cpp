// The writers refuse what a reader would not take back, and leave nothing behind when they do.

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/formats/atomic_file.h"
#include "octet/formats/gguf_reader.h"
#include "octet/formats/gguf_writer.h"
#include "octet/formats/safetensors_writer.h"
#include "support/error_message.h"
#include "support/temporary_directory.h"

namespace octet {
namespace {

using test::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::HasSubstr;

size_t entries(const TemporaryDirectory& directory) {
  const std::filesystem::directory_iterator all(directory.path());
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

std::string gguf_message(const Metadata& metadata, const std::vector<TensorSpec>& tensors) {
  const TemporaryDirectory directory;
  std::string message = test::error_message([&] {
    const GgufWriter writer(directory.file("x.gguf"), metadata, tensors);
  });
  EXPECT_EQ(entries(directory), 0U);
  return message;
}

TEST(AtomicFile, AppearsOnlyWhenFinished) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("file", "old");
  {
    AtomicFile file(path);
    file.write(test::bytes_of("new"));
    EXPECT_EQ(test::read_text(path), "old");
  }
  EXPECT_EQ(test::read_text(path), "old");
  EXPECT_EQ(entries(directory), 1U);
  AtomicFile file(path);
  const std::string large(3 << 20U, 'x');
  file.write(test::bytes_of("head "));
  file.write(test::bytes_of(large));
  file.write_zeros(5000);
  EXPECT_EQ(file.size(), 5 + large.size() + 5000);
  file.finish();
  EXPECT_EQ(test::read_text(path), "head " + large + std::string(5000, '\0'));
  EXPECT_EQ(entries(directory), 1U);
}

TEST(AtomicFile, SaysWhyItCannotWrite) {
  const TemporaryDirectory directory;
  EXPECT_THAT(
      test::error_message([&] { const AtomicFile file(directory.file("missing/file")); }),
      AllOf(HasSubstr("missing/file"), HasSubstr("cannot create"), HasSubstr("No such file"))
  );
  AtomicFile late(directory.file("taken"));
  std::filesystem::create_directory(directory.file("taken"));
  EXPECT_THAT(test::error_message([&] { late.finish(); }), HasSubstr("cannot rename"));
  EXPECT_THAT(
      test::error_message([&] { const AtomicFile early(directory.file("taken")); }),
      HasSubstr("is a folder")
  );
}

TEST(GgufWriter, RefusesWhatReadersWould) {
  EXPECT_THAT(gguf_message({}, {{"", DType::kF32, {1}}}), HasSubstr("expected 1 to 63"));
  EXPECT_THAT(
      gguf_message({}, {{std::string(64, 'n'), DType::kF32, {1}}}),
      HasSubstr("has 64 bytes; expected 1 to 63")
  );
  EXPECT_THAT(
      gguf_message({}, {{"t", DType::kF32, {1}}, {"t", DType::kF32, {1}}}),
      HasSubstr("'t' is declared twice")
  );
  EXPECT_THAT(gguf_message({}, {{"t", DType::kF32, {1, 1, 1, 1, 1}}}), HasSubstr("5 dimensions"));
  EXPECT_THAT(gguf_message({}, {{"t", DType::kF32, {0}}}), HasSubstr("at least 1"));
  EXPECT_THAT(
      gguf_message({}, {{"t", DType::kQ4K, {2, 128}}}),
      HasSubstr("a row of 128 values a multiple of 256")
  );
  EXPECT_THAT(
      gguf_message({}, {{"t", DType::kNVFP4ModelOpt, {2, 128}}}), HasSubstr("has no GGUF form")
  );
  EXPECT_THAT(gguf_message({}, {{"t", DType::kF32, {INT64_MAX}}}), HasSubstr("overflows"));
  EXPECT_THAT(gguf_message({}, {{"t", DType::kF32, {INT64_MAX / 4}}}), HasSubstr("would exceed"));
  Metadata bad_alignment;
  bad_alignment.set("general.alignment", 48U);
  EXPECT_THAT(gguf_message(bad_alignment, {}), HasSubstr("power of two"));
  Metadata bad_key;
  bad_key.set("\xFF", 1U);
  EXPECT_THAT(gguf_message(bad_key, {}), HasSubstr("must be 1 to 65535 bytes of UTF-8"));
}

TEST(GgufWriter, TensorsComeInOrderAndWhole) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("x.gguf");
  const std::vector<TensorSpec> specs = {{"a", DType::kF32, {2}}, {"b", DType::kF32, {1}}};
  {
    GgufWriter writer(path, {}, specs);
    EXPECT_THAT(test::error_message([&] { writer.begin_tensor("b"); }), HasSubstr("expected 'a'"));
    EXPECT_THAT(test::error_message([&] { writer.write({}); }), HasSubstr("outside a tensor"));
    EXPECT_THAT(test::error_message([&] { writer.end_tensor(); }), HasSubstr("not begun"));
    writer.begin_tensor("a");
    EXPECT_THAT(
        test::error_message([&] { writer.begin_tensor("b"); }), HasSubstr("before 'a' has ended")
    );
    EXPECT_THAT(
        test::error_message([&] { writer.write(test::bytes_of("123456789")); }),
        HasSubstr("9 bytes written to tensor 'a' where 8")
    );
    EXPECT_THAT(
        test::error_message([&] { writer.end_tensor(); }), HasSubstr("tensor 'a' lacks 8 bytes")
    );
    writer.write(test::bytes_of("12345678"));
    writer.end_tensor();
    EXPECT_THAT(
        test::error_message([&] { writer.finish(); }), HasSubstr("tensor 'b' was not written")
    );
  }
  EXPECT_EQ(entries(directory), 0U);
}

TEST(GgufWriter, ArchitectureComesFirst) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("x.gguf");
  Metadata metadata;
  metadata.set("a.key", 1U);
  metadata.set("general.architecture", std::string("dflash"));
  GgufWriter writer(path, metadata, {});
  writer.finish();
  EXPECT_EQ(test::read_text(path).find("general.architecture"), 32U);
  EXPECT_TRUE(read_gguf(path).metadata.entries() == metadata.entries());
}

TEST(SafetensorsWriter, RefusesWhatReadersWould) {
  const TemporaryDirectory directory;
  const auto message = [&](const std::vector<SafetensorsSpec>& specs) {
    return test::error_message([&] { const SafetensorsWriter writer(directory.file("x"), specs); });
  };
  EXPECT_THAT(message({{"t", "F7", {1}}}), HasSubstr("tensor 't': unknown dtype 'F7'"));
  EXPECT_THAT(message({{"t", "F32", {-1}}}), HasSubstr("whole bytes"));
  EXPECT_THAT(message({{"t", "F4", {3}}}), HasSubstr("whole bytes"));
  EXPECT_THAT(message({{"", "F32", {1}}}), HasSubstr("empty, reserved or declared twice"));
  EXPECT_THAT(message({{"__metadata__", "F32", {1}}}), HasSubstr("reserved"));
  EXPECT_THAT(message({{"t", "F32", {1}}, {"t", "F32", {1}}}), HasSubstr("declared twice"));
  EXPECT_THAT(message({{"\xFF", "F32", {1}}}), HasSubstr("not valid UTF-8"));
  EXPECT_EQ(entries(directory), 0U);
}

}  // namespace
}  // namespace octet
