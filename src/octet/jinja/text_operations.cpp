#include "octet/jinja/text_operations.h"

#include <algorithm>

#include <fmt/format.h>

#include "octet/base/utf8.h"

namespace octet::jinja {
namespace {

void check_separator(std::string_view separator) {
  if (separator.empty()) {
    throw Error(ErrorKind::kInvalidArgument, "the separator is empty");
  }
}

/// Bytes of the line end at `at`, 0 when there is none; those of Python's splitlines.
size_t line_end(std::string_view text, size_t at) {
  if (text.substr(at).starts_with("\r\n")) {
    return 2;
  }
  const Utf8Step step = decode_utf8(text, at);
  const char32_t c = step.status == Utf8Status::kValid ? step.code_point : 0;
  const bool ends = (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 ||
                    c == 0x2028 || c == 0x2029;
  return ends ? static_cast<size_t>(step.length) : 0;
}

}  // namespace

std::vector<Text> split_at(const Text& text, std::string_view separator, int64_t most) {
  check_separator(separator);
  std::vector<Text> out;
  size_t begin = 0;
  size_t at = text.view().find(separator);
  while (at != std::string_view::npos && most != 0) {
    out.push_back(text.cut(begin, at));
    begin = at + separator.size();
    at = text.view().find(separator, begin);
    --most;
  }
  out.push_back(text.cut(begin, text.size()));
  return out;
}

std::vector<Text> split_at_from_right(const Text& text, std::string_view separator, int64_t most) {
  check_separator(separator);
  std::vector<Text> out;
  size_t end = text.size();
  while (most != 0) {
    const size_t at = text.view().substr(0, end).rfind(separator);
    if (at == std::string_view::npos) {
      break;
    }
    out.push_back(text.cut(at + separator.size(), end));
    end = at;
    --most;
  }
  out.push_back(text.cut(0, end));
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<Text> split_at_space(const Text& text, int64_t most) {
  std::vector<Text> out;
  size_t begin = stripped(text.view(), Sides::kLeft).begin;
  const size_t end = stripped(text.view(), Sides::kRight).end;
  for (size_t at = begin; at < end && most != 0;) {
    const Utf8Step step = decode_utf8(text.view(), at);
    if (step.status == Utf8Status::kValid && is_space(step.code_point)) {
      out.push_back(text.cut(begin, at));
      begin = at + stripped(text.view().substr(at), Sides::kLeft).begin;
      at = begin;
      --most;
    } else {
      at += static_cast<size_t>(step.length);
    }
  }
  if (begin < end) {
    out.push_back(text.cut(begin, most == 0 ? text.size() : end));
  }
  return out;
}

std::vector<Text> lines_of(const Text& text, bool keep_ends) {
  std::vector<Text> out;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = line_end(text.view(), at);
    if (end > 0) {
      out.push_back(text.cut(begin, keep_ends ? at + end : at));
      begin = at + end;
      at = begin;
    } else {
      at += static_cast<size_t>(decode_utf8(text.view(), at).length);
    }
  }
  if (begin < text.size()) {
    out.push_back(text.cut(begin, text.size()));
  }
  return out;
}

Text replaced(
    Interpreter& interpreter, const Text& text, const Text& old, const Text& with, int64_t most
) {
  Text out;
  size_t begin = 0;
  if (old.empty()) {
    const std::vector<size_t> starts = character_starts(text.view());
    for (size_t i = 0; i < starts.size() && most != 0; ++i, --most) {
      interpreter.charge(1 + static_cast<int64_t>(with.size()) / 64);
      out.append(text, begin, starts[i]);
      out.append(with);
      begin = starts[i];
    }
  } else {
    size_t at = text.view().find(old.view());
    while (at != std::string_view::npos && most != 0) {
      interpreter.charge(1 + static_cast<int64_t>(with.size()) / 64);
      out.append(text, begin, at);
      out.append(with);
      begin = at + old.size();
      at = text.view().find(old.view(), begin);
      --most;
    }
  }
  out.append(text, begin, text.size());
  return out;
}

Text joined_texts(Interpreter& interpreter, const Values& items, const Text& separator) {
  Text out;
  for (size_t i = 0; i < items.size(); ++i) {
    const Text item = to_text(items[i]);
    interpreter.charge(1 + static_cast<int64_t>(item.size() + separator.size()) / 64);
    if (i > 0) {
      out.append(separator);
    }
    out.append(item);
  }
  return out;
}

Value text_list(Interpreter& interpreter, std::vector<Text> texts) {
  Values items;
  items.reserve(texts.size());
  for (Text& text : texts) {
    items.push_back(interpreter.text_value(std::move(text)));
  }
  return Value::list(std::move(items));
}

}  // namespace octet::jinja
