// Mapped files: the bytes of the file, errors that name it, and pages that can be given back and
// read again.
#include <algorithm>
#include <cstddef>
#include <fstream>
#include <string>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/base/mapped_file.h"

namespace octet {
namespace {

using testing::HasSubstr;

std::string write_file(const std::string& name, const std::string& content) {
  std::string path = testing::TempDir() + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

void expect_error(const std::string& path, ErrorKind kind, const std::string& text) {
  try {
    static_cast<void>(MappedFile::open(path));
    ADD_FAILURE() << "opened " << path;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(path));
    EXPECT_THAT(error.what(), HasSubstr(text));
  }
}

std::string to_string(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Resident memory that is backed by files.
int64_t resident_file_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0;
  int64_t resident = 0;
  int64_t shared = 0;
  statm >> total >> resident >> shared;
  return shared * sysconf(_SC_PAGESIZE);
}

int64_t sum_of_bytes(const MappedFile& file) {
  int64_t sum = 0;
  for (const std::byte b : file.bytes()) {
    sum += static_cast<int64_t>(b);
  }
  return sum;
}

TEST(MappedFile, ShowsTheBytesOfTheFile) {
  const std::string path = write_file("octet_mapped.bin", "some bytes");
  const auto file = MappedFile::open(path);
  EXPECT_EQ(to_string(file->bytes()), "some bytes");
  EXPECT_EQ(file->path(), path);
}

TEST(MappedFile, KeepsTheBytesOfADeletedFile) {
  const std::string path = write_file("octet_deleted.bin", "still here");
  const auto file = MappedFile::open(path);
  ASSERT_EQ(unlink(path.c_str()), 0);
  EXPECT_EQ(to_string(file->bytes()), "still here");
}

TEST(MappedFile, AnEmptyFileIsAnEmptySpan) {
  const auto file = MappedFile::open(write_file("octet_empty.bin", ""));
  EXPECT_TRUE(file->bytes().empty());
  file->drop(file->bytes());
  file->will_need(file->bytes());
}

TEST(MappedFile, ErrorsNameThePath) {
  expect_error(testing::TempDir() + "octet_no_such_file", ErrorKind::kNotFound, "No such file");
  expect_error(testing::TempDir(), ErrorKind::kIo, "found a directory");
  const std::string file = write_file("octet_plain.bin", "x");
  expect_error(file + "/below", ErrorKind::kNotFound, "Not a directory");
}

TEST(MappedFile, DroppedPagesLeaveMemoryAndReadTheSame) {
  constexpr int64_t kBytes = int64_t{16} << 20;
  std::string content(kBytes, '\0');
  for (size_t i = 0; i < content.size(); ++i) {
    content[i] = static_cast<char>(i * 2654435761U >> 24);
  }
  const auto file = MappedFile::open(write_file("octet_large.bin", content));
  const int64_t before = sum_of_bytes(*file);
  const int64_t resident = resident_file_bytes();
  // Not whole pages at either end: those stay.
  file->drop(file->bytes().subspan(100, kBytes - 200));
  EXPECT_LT(resident_file_bytes(), resident - kBytes * 3 / 4);
  EXPECT_EQ(sum_of_bytes(*file), before);
  file->will_need(file->bytes().subspan(5, 10000));
  EXPECT_EQ(to_string(file->bytes()), content);
}

TEST(MappedFile, DroppingLessThanAPageDoesNothing) {
  const auto file = MappedFile::open(write_file("octet_small.bin", std::string(10000, 'x')));
  file->drop(file->bytes().subspan(10, 20));
  EXPECT_EQ(to_string(file->bytes()), std::string(10000, 'x'));
}

}  // namespace
}  // namespace octet
