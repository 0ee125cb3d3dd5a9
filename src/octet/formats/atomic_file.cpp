#include "octet/formats/atomic_file.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/base/error.h"

namespace octet {

namespace {

constexpr size_t kBufferBytes = size_t{1} << 20U;
constexpr mode_t kMode = 0666;  // less the umask

std::string parent_directory(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) {
    return ".";
  }
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string unique_temporary_path(const std::string& path) {
  static std::atomic<int> counter{0};
  return fmt::format("{}.{}-{}.partial", path, ::getpid(), counter.fetch_add(1));
}

}  // namespace

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)), temporary_path_(unique_temporary_path(path_)) {
  descriptor_ = ::open(temporary_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
  if (descriptor_ < 0) {
    fail("create");
  }
  buffer_.reserve(kBufferBytes);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    ::unlink(temporary_path_.c_str());
  }
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  OCTET_CHECK(descriptor_ >= 0);
  size_ += bytes.size();
  if (buffer_.size() + bytes.size() <= kBufferBytes) {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return;
  }
  flush();
  if (bytes.size() >= kBufferBytes) {
    write_out(bytes);
  } else {
    buffer_.assign(bytes.begin(), bytes.end());
  }
}

void AtomicFile::write_zeros(uint64_t count) {
  static constexpr std::array<std::byte, 4096> kZeros{};
  while (count > 0) {
    const size_t piece = std::min<uint64_t>(count, kZeros.size());
    write(std::span(kZeros).first(piece));
    count -= piece;
  }
}

void AtomicFile::finish() {
  OCTET_CHECK(descriptor_ >= 0);
  flush();
  if (::fsync(descriptor_) != 0) {
    fail("sync");
  }
  if (::rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    fail("rename");
  }
  ::close(descriptor_);
  descriptor_ = -1;
  // The new name is durable once its directory is; a file system that cannot sync directories is
  // not an error.
  const int directory = ::open(parent_directory(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    ::fsync(directory);
    ::close(directory);
  }
}

void AtomicFile::flush() {
  write_out(buffer_);
  buffer_.clear();
}

void AtomicFile::write_out(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) {
        continue;
      }
      fail("write");
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void AtomicFile::fail(const char* action) const {
  const std::error_code code(errno, std::generic_category());
  throw Error(
      ErrorKind::kIo, fmt::format("{}: cannot {} the file: {}", path_, action, code.message())
  );
}

}  // namespace octet
