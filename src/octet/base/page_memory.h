// Anonymous memory straight from the operating system, for what is large and lives long: packed
// weights, keys and values, tables, buffers to measure with. It is zero until written and resident
// only where it was touched. Not for small or short-lived things. Invariant: the first byte lies on
// the border of a huge page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace octet {

/// Huge pages make long streams faster (4 KiB pages reach two thirds of the bandwidth), but become
/// resident 2 MiB at a time.
enum class PageAdvice { kHuge, kSmall };

class PageMemory {
 public:
  /// `purpose` is for the message: Error(kResourceExhausted) when the system refuses.
  PageMemory(int64_t bytes, PageAdvice advice, std::string_view purpose);
  ~PageMemory();
  PageMemory(const PageMemory&) = delete;
  PageMemory& operator=(const PageMemory&) = delete;

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::byte* mapping_ = nullptr;
  std::byte* data_ = nullptr;
  int64_t mapped_bytes_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace octet
