#include "octet/formats/atomic_file.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/base/error.h"
#include "octet/formats/durable_files.h"

namespace octet {

namespace {

constexpr size_t kBufferBytes = size_t{1} << 20U;
constexpr mode_t kMode = 0666;  // less the umask

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
  if (const char* failed = publish_file(descriptor_, temporary_path_, path_)) {
    fail(failed);
  }
  ::close(descriptor_);
  descriptor_ = -1;
}

void AtomicFile::flush() {
  write_out(buffer_);
  buffer_.clear();
}

void AtomicFile::write_out(std::span<const std::byte> bytes) {
  if (!write_fully(descriptor_, bytes)) {
    fail("write");
  }
}

void AtomicFile::fail(const char* action) const {
  const std::error_code code(errno, std::generic_category());
  throw Error(
      ErrorKind::kIo, fmt::format("{}: cannot {} the file: {}", path_, action, code.message())
  );
}

}  // namespace octet
