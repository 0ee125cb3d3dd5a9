// UTF-8 at the level of bytes: decoding one code point at a time, validity, and the replacement of
// garbage. Not for normalisation, case or display width. Invariant: one ill-formed sequence is what
// the Unicode standard calls a maximal subpart (table 3-8), so garbage becomes the same number of
// U+FFFD here as in browsers and Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace octet {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;
inline constexpr std::string_view kReplacementUtf8 = "\xEF\xBF\xBD";

enum class Utf8Status {
  kValid,
  kInvalid,     // ill-formed, whatever may follow
  kIncomplete,  // the text ends inside a sequence that is well-formed so far
};

struct Utf8Step {
  char32_t code_point = kReplacementCharacter;  // only meaningful when kValid
  int length = 1;  // bytes to step over, 1..4; a maximal subpart when not kValid
  Utf8Status status = Utf8Status::kInvalid;
};

/// Decodes the sequence that starts at text[at]; `at` must be inside the text.
Utf8Step decode_utf8(std::string_view text, size_t at);

bool is_valid_utf8(std::string_view text);

/// Appends the UTF-8 form of a Unicode scalar value (not a surrogate, at most 0x10FFFF).
void append_utf8(std::string& out, char32_t code_point);

/// The text with every ill-formed sequence replaced by U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

}  // namespace octet
