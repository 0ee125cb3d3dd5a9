#include "octet/formats/atomic_file.h"

#include <algorithm>
#include <array>
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

int create_file(const TemporaryName& name) {
  return ::open(name.path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), temporary_(path_) {
  require_replaceable(path_);
  descriptor_ = create_file(temporary_);
  while (descriptor_ < 0 && errno == EEXIST) {
    temporary_.renew(path_);
    descriptor_ = create_file(temporary_);
  }
  if (descriptor_ < 0) {
    fail("create");
  }
  buffer_.reserve(kBufferBytes);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    ::unlink(temporary_.path().c_str());
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
  if (const char* failed = publish_file(descriptor_, temporary_.path(), path_)) {
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
