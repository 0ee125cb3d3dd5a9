// Numbers that tell texts apart: FNV-1a with 64 bits. For seeing that two runs had the same prompts
// and wrote the same replies; not against anybody who wants a collision.
#pragma once

#include <cstdint>
#include <string_view>

namespace octet {

class Digest {
 public:
  /// The next unit: a byte of a text, a token.
  void add(uint64_t unit) { value_ = (value_ ^ unit) * 0x100000001b3; }
  /// A text, told from its neighbours by a byte that UTF-8 does not have.
  void add_text(std::string_view text) {
    for (const char character : text) {
      add(static_cast<unsigned char>(character));
    }
    add(0xFF);
  }
  /// Brings the high bits to where later units mix them in: without it two changes of the highest
  /// bit cancel.
  void fold() { value_ ^= value_ >> 32; }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace octet
