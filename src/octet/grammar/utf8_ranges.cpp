#include "octet/grammar/utf8_ranges.h"

#include <string>

#include "octet/base/utf8.h"

namespace octet {
namespace {

/// Splits [first, last] until the encodings of both ends differ in whole blocks of trailing bytes.
void split(char32_t first, char32_t last, std::vector<Utf8Range>& out) {
  constexpr std::array<char32_t, 3> kLastOfLength = {0x7F, 0x7FF, 0xFFFF};
  for (const char32_t border : kLastOfLength) {
    if (first <= border && last > border) {
      split(first, border, out);
      split(border + 1, last, out);
      return;
    }
  }
  const int length = first <= 0x7F ? 1 : first <= 0x7FF ? 2 : first <= 0xFFFF ? 3 : 4;
  for (int trailing = 1; trailing < length; ++trailing) {
    const char32_t mask = (char32_t{1} << (6 * static_cast<unsigned>(trailing))) - 1;
    if ((first & ~mask) == (last & ~mask)) {
      break;
    }
    if ((first & mask) != 0) {
      split(first, first | mask, out);
      split((first | mask) + 1, last, out);
      return;
    }
    if ((last & mask) != mask) {
      split(first, (last & ~mask) - 1, out);
      split(last & ~mask, last, out);
      return;
    }
  }
  std::string low;
  std::string high;
  append_utf8(low, first);
  append_utf8(high, last);
  Utf8Range range = {.length = length};
  for (size_t i = 0; i < low.size(); ++i) {
    range.bytes.at(i) = {static_cast<uint8_t>(low[i]), static_cast<uint8_t>(high[i])};
  }
  out.push_back(range);
}

}  // namespace

std::vector<Utf8Range> utf8_ranges(CodeRange range) {
  std::vector<Utf8Range> out;
  split(range.first, range.last, out);
  return out;
}

}  // namespace octet
