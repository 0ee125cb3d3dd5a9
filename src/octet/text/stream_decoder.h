// Turns the bytes of tokens, as they come, into text that is valid UTF-8 at every moment. Not for
// stop strings (stop_matcher.h): feed it only bytes that may be published. Policy: an ill-formed
// sequence becomes U+FFFD as soon as it is known to be ill-formed, an unfinished one at flush.
// Invariants: at most 3 bytes are held back; all output joined equals replace_invalid_utf8 of all
// input joined.
#pragma once

#include <string>
#include <string_view>

namespace octet {

class StreamDecoder {
 public:
  /// The text that `bytes` completes; may be empty.
  std::string push(std::string_view bytes);

  /// The end of the text: what is still held back, as U+FFFD. The decoder is as new afterwards.
  std::string flush();

  /// Bytes held back, 0..3.
  int held_bytes() const { return static_cast<int>(held_.size()); }

 private:
  std::string held_;  // the start of one well-formed sequence
};

}  // namespace octet
