// Where outputs appear: what is checked before the work, and folders that appear whole or not at
// all.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/formats/atomic_file.h"
#include "octet/quantize/output_place.h"
#include "support/error_message.h"
#include "support/temporary_directory.h"

namespace octet::test {
namespace {

namespace fs = std::filesystem;

void expect_refusal(
    const std::string& output, int64_t bytes, ErrorKind kind, const std::string& reason
) {
  try {
    prepare_output({"no input"}, output, bytes, ExistingOutput::kRefuse);
    FAIL() << "expected: " << reason;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    EXPECT_THAT(error.what(), testing::HasSubstr(reason));
  }
}

TEST(OutputPlace, RefusesWhatCannotBeWrittenBeforeTheWork) {
  const TemporaryDirectory directory;
  expect_refusal(
      directory.file("x"), int64_t{1} << 60, ErrorKind::kResourceExhausted, "are needed and"
  );
  expect_refusal(directory.file("no/where"), 0, ErrorKind::kNotFound, "does not exist");
  expect_refusal(directory.write("there", ""), 0, ErrorKind::kInvalidArgument, "add --force");
  EXPECT_NO_THROW(prepare_output({"no input"}, directory.file("there"), 0, ExistingOutput::kReplace)
  );
  EXPECT_NO_THROW(prepare_output({"no input"}, directory.file("new"), 0, ExistingOutput::kRefuse));
}

TEST(OutputPlace, RemovesWhatDeadProcessesLeftAndNothingElse) {
  const TemporaryDirectory directory;
  constexpr const char* kNobody = "2147483646";  // beyond any process
  const std::string dead = directory.write(std::string("out.") + kNobody + "-0.partial", "");
  const std::string own =
      directory.write("out." + std::to_string(::getpid()) + "-100000.partial", "");
  const AtomicFolder ours(directory.file("out"));
  const std::string other = directory.write(std::string("out2.") + kNobody + "-0.partial", "");
  const std::string journal = directory.write("out.partial", "");
  prepare_output({"no input"}, directory.file("out"), 0, ExistingOutput::kRefuse);
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_FALSE(fs::exists(own)) << "a process of our number wrote it, and we do not";
  EXPECT_TRUE(fs::exists(ours.file("."))) << "this one is being written";
  EXPECT_TRUE(fs::exists(other));
  EXPECT_TRUE(fs::exists(journal));
}

TEST(OutputPlace, NeverReplacesAnInput) {
  const TemporaryDirectory directory;
  const std::string input = directory.write("in.gguf", "");
  fs::create_directory(directory.file("folder"));
  const std::string inside = directory.write("folder/in.jsonl", "");
  const std::vector<std::string> inputs = {"", "no input", input, inside};
  for (const std::string& output : {input, inside, directory.file("folder"), directory.path()}) {
    EXPECT_THROW(prepare_output(inputs, output, 0, ExistingOutput::kReplace), Error) << output;
  }
  const std::string beside = directory.write("folder/in.json", "");
  EXPECT_NO_THROW(prepare_output(inputs, beside, 0, ExistingOutput::kReplace));
}

TEST(OutputPlace, DevicesPipesAndLinksKeepTheirNames) {
  const TemporaryDirectory directory;
  const std::string pipe = directory.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string link = directory.file("link");
  fs::create_symlink(directory.write("file", "old"), link);
  const std::string lost = directory.file("lost");
  fs::create_symlink(directory.file("nowhere"), lost);
  for (const std::string& path : {pipe, link, lost}) {
    for (const OutputKind kind : {OutputKind::kFile, OutputKind::kFolder}) {
      EXPECT_THAT(
          error_message([&] { prepare_output({}, path, 0, ExistingOutput::kReplace, kind); }),
          testing::HasSubstr("name a file")
      ) << path;
    }
    EXPECT_THROW(AtomicFile{path}, Error) << path;
  }
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(read_text(link), "old");
}

TEST(OutputPlace, OnlyCheckpointsAreReplacedByFolders) {
  const TemporaryDirectory directory;
  const auto prepare = [&](const std::string& name, OutputKind kind) {
    return error_message([&] {
      prepare_output({}, directory.file(name), 0, ExistingOutput::kReplace, kind);
    });
  };
  fs::create_directory(directory.file("home"));
  EXPECT_EQ(prepare("home", OutputKind::kFolder), "") << "nothing is lost";
  directory.write("home/letter", "");
  EXPECT_THAT(prepare("home", OutputKind::kFolder), testing::HasSubstr("without a checkpoint"));
  EXPECT_THAT(prepare("home/", OutputKind::kFolder), testing::HasSubstr("without a checkpoint"));
  EXPECT_THAT(prepare("home", OutputKind::kFile), testing::HasSubstr("is a folder"));
  directory.write("home/config.json", "{}");
  EXPECT_EQ(prepare("home", OutputKind::kFolder), "");
  EXPECT_EQ(prepare("new/", OutputKind::kFolder), "");
}

int64_t leftovers(const TemporaryDirectory& directory, const std::string& output) {
  int64_t count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory.path())) {
    const std::string name = entry.path().filename().string();
    count += name.starts_with(output + ".") && name.ends_with(".partial") ? 1 : 0;
  }
  return count;
}

TEST(TemporaryNames, LeftoversUnderOurNumberAreInNobodysWay) {
  const TemporaryDirectory directory;
  for (int n = 0; n < 300; ++n) {  // as in a container, where every run is process 1
    directory.write(fmt::format("file.{}-{}.partial", ::getpid(), n), "old");
    fs::create_directory(directory.file(fmt::format("folder.{}-{}.partial", ::getpid(), n)));
  }
  AtomicFile file(directory.file("file"));
  file.write(bytes_of("new"));
  file.finish();
  EXPECT_EQ(read_text(directory.file("file")), "new");
  AtomicFolder folder(directory.file("folder") + "/");
  std::ofstream(folder.file("a")) << "new";
  folder.finish();
  EXPECT_EQ(read_text(directory.file("folder/a")), "new");
  EXPECT_EQ(read_text(directory.file(fmt::format("file.{}-299.partial", ::getpid()))), "old");
  for (const char* output : {"file", "folder"}) {
    prepare_output({}, directory.file(output) + "x", 0, ExistingOutput::kReplace);
    EXPECT_EQ(leftovers(directory, output), 300) << "they belong to another output";
    fs::remove_all(directory.file(output));
    prepare_output({}, directory.file(output), 0, ExistingOutput::kRefuse);
    EXPECT_EQ(leftovers(directory, output), 0);
  }
}

TEST(AtomicFolder, AppearsWholeOrNotAtAll) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("folder");
  {
    const AtomicFolder abandoned(path);
    std::ofstream(abandoned.file("a")) << "old";
    EXPECT_FALSE(fs::exists(path));
  }
  EXPECT_TRUE(fs::is_empty(directory.path()));
  for (const char* content : {"first", "second"}) {
    AtomicFolder folder(path);
    std::ofstream(folder.file("a")) << content;
    folder.finish();
    EXPECT_EQ(read_text(path + "/a"), content);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(directory.path()), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace octet::test
