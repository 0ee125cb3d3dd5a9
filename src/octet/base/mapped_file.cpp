#include "octet/base/mapped_file.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/base/error.h"

namespace octet {

namespace {

[[noreturn]] void throw_system_error(const std::string& path, std::string_view action, int code) {
  const ErrorKind kind = code == ENOENT || code == ENOTDIR ? ErrorKind::kNotFound : ErrorKind::kIo;
  throw Error(
      kind,
      fmt::format("{}: cannot {} the file: {}", path, action, std::generic_category().message(code))
  );
}

/// A range of whole pages.
struct Pages {
  std::byte* first = nullptr;
  size_t bytes = 0;
};

/// The pages of a mapping that lie completely inside `range`, or with `round_out` those that it
/// touches. The mapping starts on a page border, so offsets in it can be rounded.
Pages pages_of(
    std::span<const std::byte> mapping, std::span<const std::byte> range, bool round_out
) {
  OCTET_CHECK(range.data() >= mapping.data());
  const auto begin = static_cast<size_t>(range.data() - mapping.data());
  const size_t end = begin + range.size();
  OCTET_CHECK(end <= mapping.size());
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t first = (round_out ? begin : begin + page - 1) / page * page;
  // The file's last page belongs to the file alone, whole or not.
  const size_t last = round_out || end == mapping.size() ? end : end / page * page;
  if (first >= last) {
    return {};
  }
  return {const_cast<std::byte*>(mapping.data()) + first, last - first};
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  std::shared_ptr<MappedFile> file(new MappedFile());  // the constructor is private
  file->path_ = path;
  file->descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file->descriptor_ < 0) {
    throw_system_error(path, "open", errno);
  }
  struct stat status {};
  if (::fstat(file->descriptor_, &status) != 0) {
    throw_system_error(path, "examine", errno);
  }
  if (!S_ISREG(status.st_mode)) {
    throw Error(
        ErrorKind::kIo,
        fmt::format(
            "{}: expected a regular file, found {}",
            path,
            S_ISDIR(status.st_mode) ? "a directory" : "something else"
        )
    );
  }
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) {
    return file;
  }
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file->descriptor_, 0);
  if (address == MAP_FAILED) {
    throw_system_error(path, "map", errno);
  }
  file->bytes_ = {static_cast<const std::byte*>(address), size};
  return file;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) {
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

void MappedFile::drop(std::span<const std::byte> range) const {
  const Pages pages = pages_of(bytes_, range, false);
  if (pages.bytes > 0) {
    // Advice only: when the kernel refuses, memory stays resident and nothing else changes.
    static_cast<void>(::madvise(pages.first, pages.bytes, MADV_DONTNEED));
  }
}

void MappedFile::will_need(std::span<const std::byte> range) const {
  const Pages pages = pages_of(bytes_, range, true);
  if (pages.bytes > 0) {
    static_cast<void>(::madvise(pages.first, pages.bytes, MADV_WILLNEED));
  }
}

std::string read_whole_file(const std::string& path) {
  const auto file = MappedFile::open(path);
  return {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()};
}

}  // namespace octet
