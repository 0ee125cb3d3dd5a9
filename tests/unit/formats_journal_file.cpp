// Outputs that grow over several runs.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/formats/journal_file.h"
#include "support/temporary_directory.h"

namespace octet::test {
namespace {

TEST(JournalFile, GrowsOverRunsAndAppearsWhenFinished) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("out");
  {
    JournalFile first(path);
    first.append(bytes_of("whole|torn"));
    first.sync();
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  JournalFile second(path);
  EXPECT_EQ(second.size(), 10U);
  second.cut(6);
  second.append(bytes_of("more"));
  EXPECT_EQ(second.size(), 10U);
  second.finish();
  EXPECT_EQ(read_text(path), "whole|more");
  EXPECT_FALSE(std::filesystem::exists(JournalFile::partial_path(path)));
}

TEST(JournalFile, RefusesASecondWriterAndPlacesThatAreNone) {
  const TemporaryDirectory directory;
  const JournalFile first(directory.file("out"));
  for (const std::string& path : {directory.file("out"), directory.file("no/where")}) {
    try {
      const JournalFile other(path);
      FAIL() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kIo);
      EXPECT_THAT(error.what(), testing::HasSubstr(path));
    }
  }
}

}  // namespace
}  // namespace octet::test
