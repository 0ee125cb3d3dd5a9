// An output that is made piece by piece, over more than one run of the program: grows under
// "<path>.partial" and gets its name when it is whole. Not for outputs that are made in one go
// (atomic_file.h). Invariant: what sync() returned from is on disk; the final name never shows a
// file in the making.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace octet {

class JournalFile {
 public:
  /// Where such a file grows.
  static std::string partial_path(const std::string& path);

  /// Opens what an earlier run left, or begins anew. Throws Error(kIo) naming the path and the
  /// system's reason, as all members do, also when another run is at it.
  explicit JournalFile(std::string path);
  ~JournalFile();
  JournalFile(const JournalFile&) = delete;
  JournalFile& operator=(const JournalFile&) = delete;

  uint64_t size() const { return size_; }
  /// Forgets what lies behind the first `bytes`.
  void cut(uint64_t bytes);
  void append(std::span<const std::byte> bytes);
  void sync();
  /// Syncs and gives the file its name. It accepts no more bytes.
  void finish();

 private:
  [[noreturn]] void fail(const char* action) const;

  std::string path_;
  uint64_t size_ = 0;
  int descriptor_ = -1;
};

}  // namespace octet
