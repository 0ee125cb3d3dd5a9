#include "octet/jinja/letters.h"

#include <clocale>
#include <cwctype>

#include "octet/base/utf8.h"

namespace octet::jinja {
namespace {

/// The C library's tables of Unicode, independent of the program's locale. Null where the system
/// lacks them: then only ASCII has case.
locale_t unicode_locale() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return locale;
}

template <typename Map>
Text mapped(const Text& text, Map map) {
  Text out;
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text.view(), at);
    const auto length = static_cast<size_t>(step.length);
    const std::string_view old = text.view().substr(at, length);
    std::string replacement;
    if (step.status == Utf8Status::kValid) {
      map(step.code_point, replacement);
    } else {
      replacement = old;
    }
    out.append(replacement, text.origin(at));
    at += length;
  }
  return out;
}

void append_upper(char32_t c, std::string& out) {
  if (c == 0xDF) {
    out.append("SS");
  } else {
    append_utf8(out, upper(c));
  }
}

}  // namespace

char32_t upper(char32_t c) {
  if (c < 0x80 || unicode_locale() == nullptr) {
    return c >= 'a' && c <= 'z' ? c - 32 : c;
  }
  return static_cast<char32_t>(towupper_l(static_cast<wint_t>(c), unicode_locale()));
}

char32_t lower(char32_t c) {
  if (c < 0x80 || unicode_locale() == nullptr) {
    return c >= 'A' && c <= 'Z' ? c + 32 : c;
  }
  return static_cast<char32_t>(towlower_l(static_cast<wint_t>(c), unicode_locale()));
}

bool is_letter(char32_t c) {
  if (c < 0x80 || unicode_locale() == nullptr) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  }
  return iswalpha_l(static_cast<wint_t>(c), unicode_locale()) != 0;
}

Text upper(const Text& text) {
  return mapped(text, append_upper);
}

Text lower(const Text& text) {
  return mapped(text, [](char32_t c, std::string& out) { append_utf8(out, lower(c)); });
}

Text capitalized(const Text& text) {
  return mapped(text, [first = true](char32_t c, std::string& out) mutable {
    append_utf8(out, first ? upper(c) : lower(c));
    first = false;
  });
}

Text titled(const Text& text) {
  return mapped(text, [inside = false](char32_t c, std::string& out) mutable {
    append_utf8(out, inside ? lower(c) : upper(c));
    inside = is_letter(c);
  });
}

Text titled_words(const Text& text) {
  return mapped(text, [inside = false](char32_t c, std::string& out) mutable {
    const bool border = is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    append_utf8(out, inside ? lower(c) : upper(c));
    inside = !border;
  });
}

}  // namespace octet::jinja
