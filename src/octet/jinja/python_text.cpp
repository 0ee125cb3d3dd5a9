// Values as text: str, repr and JSON, as Python writes them.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/utf8.h"
#include "octet/jinja/callable.h"
#include "octet/jinja/value.h"

namespace octet::jinja {
namespace {

/// Appends characters one by one, each from its own origin.
template <typename Escape>
void append_escaped(Text& out, const Text& text, const Escape& escape) {
  size_t plain = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text.view(), at);
    const size_t next = at + static_cast<size_t>(step.length);
    const std::string replacement = escape(step);
    if (!replacement.empty()) {
      out.append(text, plain, at);
      out.append(replacement, text.origin(at));
      plain = next;
    }
    at = next;
  }
  out.append(text, plain, text.size());
}

void append_template(Text& out, std::string_view bytes) {
  out.append(bytes, Origin::kTemplate);
}

/// Code points that Python's repr writes as they are. Its own table is larger; control characters
/// and exotic white space are what texts have.
bool printable(char32_t c) {
  return c >= 0x20 && !(c >= 0x7F && c <= 0xA0) && c != 0xAD && !(is_space(c) && c != 0x20) &&
         !(c >= 0x200B && c <= 0x200F) && !(c >= 0x202A && c <= 0x202E) &&
         !(c >= 0x2060 && c <= 0x206F) && c != 0xFEFF && !(c >= 0xD800 && c <= 0xF8FF) &&
         c < 0xE0000;
}

std::string escape_code_point(char32_t c) {
  const auto number = static_cast<uint32_t>(c);
  return c < 0x100     ? fmt::format("\\x{:02x}", number)
         : c < 0x10000 ? fmt::format("\\u{:04x}", number)
                       : fmt::format("\\U{:08x}", number);
}

void append_text_repr(Text& out, const Text& text) {
  const bool double_quotes =
      text.bytes().find('\'') != std::string::npos && text.bytes().find('"') == std::string::npos;
  const char quote = double_quotes ? '"' : '\'';
  append_template(out, {&quote, 1});
  append_escaped(out, text, [&](const Utf8Step& step) -> std::string {
    const char32_t c = step.code_point;
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      return {'\\', static_cast<char>(c)};
    }
    if (c == '\n' || c == '\r' || c == '\t') {
      return c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    }
    return printable(c) ? std::string() : escape_code_point(c);
  });
  append_template(out, {&quote, 1});
}

void append_repr(Text& out, const Value& value);

void append_sequence(Text& out, const Sequence& sequence) {
  append_template(out, sequence.tuple ? "(" : "[");
  for (size_t i = 0; i < sequence.items.size(); ++i) {
    append_template(out, i == 0 ? "" : ", ");
    append_repr(out, sequence.items[i]);
  }
  append_template(out, sequence.tuple ? (sequence.items.size() == 1 ? ",)" : ")") : "]");
}

void append_dict(Text& out, const Dict& dict) {
  append_template(out, "{");
  bool first = true;
  for (const auto& [key, value] : dict.entries()) {
    append_template(out, std::exchange(first, false) ? "" : ", ");
    append_repr(out, key);
    append_template(out, ": ");
    append_repr(out, value);
  }
  append_template(out, "}");
}

void append_repr(Text& out, const Value& value) {
  if (const Text* text = value.as_text()) {
    append_text_repr(out, *text);
  } else if (const Sequence* sequence = value.as_sequence()) {
    append_sequence(out, *sequence);
  } else if (const Dict* dict = value.as_dict()) {
    append_dict(out, *dict);
  } else if (value.is_undefined()) {
    append_template(out, "Undefined");
  } else {
    out.append(to_text(value));
  }
}

/// Writes JSON as json.dumps does.
class JsonWriter {
 public:
  JsonWriter(const JsonStyle& style, Text& out) : style_(style), out_(out) {}

  void write(const Value& value, int level) {
    if (const Text* text = value.as_text()) {
      string(*text);
    } else if (const Sequence* sequence = value.as_sequence()) {
      array(sequence->items, level);
    } else if (const Dict* dict = value.as_dict()) {
      object(*dict, level);
    } else {
      append_template(out_, scalar(value));
    }
  }

 private:
  static std::string scalar(const Value& value) {
    if (value.is_none()) {
      return "null";
    }
    if (value.is_boolean()) {
      return value.boolean() ? "true" : "false";
    }
    if (value.is_integer()) {
      return std::to_string(value.integer());
    }
    if (value.is_real()) {
      const std::string text = real_repr(value.real());
      return text == "nan"    ? "NaN"
             : text == "inf"  ? "Infinity"
             : text == "-inf" ? "-Infinity"
                              : text;
    }
    throw Error(
        ErrorKind::kInvalidArgument, fmt::format("a {} cannot be written as JSON", type_name(value))
    );
  }

  void string(const Text& text) {
    append_template(out_, "\"");
    append_escaped(out_, text, [this](const Utf8Step& step) { return escape(step.code_point); });
    append_template(out_, "\"");
  }

  std::string escape(char32_t c) const {
    static constexpr std::string_view kShort = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (size_t i = 0; i < kShort.size(); i += 2) {
      if (c == static_cast<char32_t>(kShort[i])) {
        return {'\\', kShort[i + 1]};
      }
    }
    const auto number = static_cast<uint32_t>(c);
    if (c < 0x20 || (style_.ensure_ascii && c >= 0x7F && c < 0x10000)) {
      return fmt::format("\\u{:04x}", number);
    }
    if (style_.ensure_ascii && c >= 0x10000) {
      const uint32_t rest = number - 0x10000;
      return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10U), 0xDC00 + (rest & 0x3FFU));
    }
    return {};
  }

  void line(int level) {
    if (style_.indent >= 0) {
      append_template(out_, fmt::format("\n{:{}}", "", style_.indent * level));
    }
  }

  void array(const Values& items, int level) {
    append_template(out_, "[");
    for (size_t i = 0; i < items.size(); ++i) {
      append_template(out_, i == 0 ? "" : style_.item_separator);
      line(level + 1);
      write(items[i], level + 1);
    }
    if (!items.empty()) {
      line(level);
    }
    append_template(out_, "]");
  }

  void object(const Dict& dict, int level) {
    std::vector<Entry> entries = dict.entries();
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return compare(a.first, b.first) < 0;
      });
    }
    append_template(out_, "{");
    bool first = true;
    for (const auto& [key, value] : entries) {
      append_template(out_, std::exchange(first, false) ? "" : style_.item_separator);
      line(level + 1);
      if (const Text* text = key.as_text()) {
        string(*text);
      } else {
        append_template(out_, fmt::format("\"{}\"", scalar(key)));
      }
      append_template(out_, style_.key_separator);
      write(value, level + 1);
    }
    if (!entries.empty()) {
      line(level);
    }
    append_template(out_, "}");
  }

  const JsonStyle& style_;
  Text& out_;
};

}  // namespace

Text to_text(const Value& value) {
  if (const Text* text = value.as_text()) {
    return *text;
  }
  if (value.is_undefined()) {
    return {};
  }
  if (value.is_none()) {
    return Text("None");
  }
  if (value.is_boolean()) {
    return Text(value.boolean() ? "True" : "False");
  }
  if (value.is_integer()) {
    return Text(std::to_string(value.integer()));
  }
  if (value.is_real()) {
    return Text(real_repr(value.real()));
  }
  if (value.as_sequence() != nullptr || value.as_dict() != nullptr) {
    return to_repr(value);
  }
  return Text(
      value.as_namespace() != nullptr ? std::string("<namespace>")
      : value.as_loop() != nullptr    ? std::string("<loop>")
                                      : "<function " + value.as_callable()->name() + ">"
  );
}

Text to_repr(const Value& value) {
  Text out;
  append_repr(out, value);
  return out;
}

Text to_json(const Value& value, const JsonStyle& style) {
  Text out;
  JsonWriter(style, out).write(value, 0);
  return out;
}

}  // namespace octet::jinja
