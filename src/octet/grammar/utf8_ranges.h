// Ranges of characters as ranges of bytes: U+0080..U+07FF is C2..DF then 80..BF. Not for decoding
// (base/utf8.h). Invariant: the byte ranges of a character range stand for exactly its characters.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "octet/grammar/pattern.h"

namespace octet {

struct ByteRange {
  uint8_t first = 0;
  uint8_t last = 0;
};

struct Utf8Range {
  std::array<ByteRange, 4> bytes{};
  int length = 0;
};

/// The range must hold no surrogates.
std::vector<Utf8Range> utf8_ranges(CodeRange range);

}  // namespace octet
