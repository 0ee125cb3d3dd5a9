// A whole file mapped read-only. Keeps the descriptor open, so that the size cannot change under us
// unnoticed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace octet {

class MappedFile {
 public:
  /// Throws Error (kNotFound, kIo) naming the path. An empty file maps to an empty span.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  /// Tells the kernel that the whole pages inside `range` are no longer needed (they stay readable:
  /// a later touch reads them again). Used after a weight was packed, so that it is never resident
  /// twice.
  void drop(std::span<const std::byte> range) const;
  /// Tells the kernel that `range` will be read soon, front to back.
  void will_need(std::span<const std::byte> range) const;

 private:
  MappedFile() = default;
  std::string path_;
  std::span<const std::byte> bytes_;
  int descriptor_ = -1;
};

/// A small file as it is. Throws as MappedFile::open does.
std::string read_whole_file(const std::string& path);

}  // namespace octet
