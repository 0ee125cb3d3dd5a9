// A string of the template language that knows where each of its bytes came from: from the template
// or from the caller. Every operation on strings is a series of cuts and appends, so origins
// survive all of them. Not for encoding or decoding (base/utf8.h). Invariant: runs cover the bytes
// exactly, in order, without empty runs, neighbours of different origin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octet::jinja {

enum class Origin : uint8_t {
  kTemplate,  // written by the template's author: may become control tokens
  kCaller,    // anything that came in with the request
};

class Text {
 public:
  struct Run {
    size_t end = 0;  // bytes from the start of the text
    Origin origin = Origin::kTemplate;
  };

  Text() = default;
  explicit Text(std::string_view bytes, Origin origin = Origin::kTemplate) {
    append(bytes, origin);
  }

  const std::string& bytes() const { return bytes_; }
  std::string_view view() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  std::span<const Run> runs() const { return runs_; }
  /// Of the byte at `at`; of an empty text kTemplate.
  Origin origin(size_t at) const;

  void append(std::string_view bytes, Origin origin);
  void append(const Text& text);
  /// The bytes [begin, end) of another text, with their origins.
  void append(const Text& text, size_t begin, size_t end);
  Text cut(size_t begin, size_t end) const;

 private:
  std::string bytes_;
  std::vector<Run> runs_;
};

/// What templates mean by white space: that of Python's str.strip.
bool is_space(char32_t c);

/// The bytes [begin, end) without white space at the sides that are asked for.
enum class Sides : uint8_t { kLeft = 1, kRight = 2, kBoth = 3 };
struct ByteRange {
  size_t begin = 0;
  size_t end = 0;
};
ByteRange stripped(std::string_view text, Sides sides);
/// The same for any set of characters (UTF-8), white space when `set` is empty.
ByteRange stripped(std::string_view text, Sides sides, std::string_view set);

/// Where the characters of a text start; one more entry for its end. Ill-formed bytes count one
/// each.
std::vector<size_t> character_starts(std::string_view text);

}  // namespace octet::jinja
