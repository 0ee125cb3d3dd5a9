// Many short strings in one block of memory, found by index. Grows at the end only; views stay
// valid once it no longer grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace octet {

class StringTable {
 public:
  void reserve(size_t strings, size_t bytes) {
    ends_.reserve(strings);
    text_.reserve(bytes);
  }
  /// The caller keeps the sum of all lengths below 4 GiB.
  void add(std::string_view string) {
    text_.append(string);
    ends_.push_back(static_cast<uint32_t>(text_.size()));
  }
  /// Ask for the memory of [index] ahead: first its place, later its bytes.
  void prefetch_place(size_t index) const { __builtin_prefetch(&ends_[index]); }
  void prefetch_bytes(size_t index) const { __builtin_prefetch((*this)[index].data()); }
  size_t size() const { return ends_.size(); }
  std::string_view operator[](size_t index) const {
    const size_t begin = index == 0 ? 0 : ends_[index - 1];
    return std::string_view(text_).substr(begin, ends_[index] - begin);
  }

 private:
  std::string text_;
  std::vector<uint32_t> ends_;
};

}  // namespace octet
