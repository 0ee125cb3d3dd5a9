// An output file that appears under its name complete and synced to disk, or not at all: written
// beside the target under a temporary name, then renamed. Not for appending or seeking. Invariant:
// an object destroyed without finish() leaves nothing behind and the previous file untouched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "octet/formats/temporary_name.h"

namespace octet {

class AtomicFile {
 public:
  /// Creates the temporary file. Throws Error(kInvalidArgument) for a path that is there and is no
  /// regular file, Error(kIo) naming the path and the system's reason, as all members do.
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }  // bytes written so far

  void write(std::span<const std::byte> bytes);
  void write_zeros(uint64_t count);

  /// Flushes, syncs, renames. The object accepts no more bytes.
  void finish();

 private:
  void write_out(std::span<const std::byte> bytes);
  void flush();
  [[noreturn]] void fail(const char* action) const;

  std::string path_;
  TemporaryName temporary_;
  std::vector<std::byte> buffer_;
  uint64_t size_ = 0;
  int descriptor_ = -1;
};

}  // namespace octet
