#include "octet/formats/journal_file.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/base/error.h"
#include "octet/formats/durable_files.h"

namespace octet {
namespace {

constexpr mode_t kMode = 0666;  // less the umask

}  // namespace

std::string JournalFile::partial_path(const std::string& path) {
  return path + ".partial";
}

JournalFile::JournalFile(std::string path) : path_(std::move(path)) {
  descriptor_ = ::open(partial_path(path_).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMode);
  if (descriptor_ < 0) {
    fail("create");
  }
  const bool alone = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
  const off_t end = alone ? ::lseek(descriptor_, 0, SEEK_END) : -1;
  if (end < 0) {
    const int reason = errno;
    ::close(descriptor_);
    errno = reason;
    fail(alone ? "read" : "lock");
  }
  size_ = static_cast<uint64_t>(end);
}

JournalFile::~JournalFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

void JournalFile::cut(uint64_t bytes) {
  OCTET_CHECK(bytes <= size_);
  const auto length = static_cast<off_t>(bytes);
  if (::ftruncate(descriptor_, length) != 0 || ::lseek(descriptor_, length, SEEK_SET) < 0) {
    fail("cut");
  }
  size_ = bytes;
}

void JournalFile::append(std::span<const std::byte> bytes) {
  if (!write_fully(descriptor_, bytes)) {
    fail("write");
  }
  size_ += bytes.size();
}

void JournalFile::sync() {
  if (::fsync(descriptor_) != 0) {
    fail("sync");
  }
}

void JournalFile::finish() {
  if (const char* failed = publish_file(descriptor_, partial_path(path_), path_)) {
    fail(failed);
  }
  ::close(descriptor_);
  descriptor_ = -1;
}

void JournalFile::fail(const char* action) const {
  const std::error_code code(errno, std::generic_category());
  throw Error(
      ErrorKind::kIo,
      fmt::format("{}: cannot {} the file: {}", partial_path(path_), action, code.message())
  );
}

}  // namespace octet
