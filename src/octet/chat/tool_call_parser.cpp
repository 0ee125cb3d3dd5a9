#include "octet/chat/tool_call_parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "octet/base/utf8.h"

namespace octet {
namespace {

constexpr std::string_view kCall = "call:";
constexpr std::string_view kSpace = " \t\r\n";
constexpr size_t kMaxNesting = 100;

bool is_space(char c) {
  return kSpace.find(c) != std::string_view::npos;
}
bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// `rest` ends before it is clear whether it begins with the delimiter.
bool may_be_delimiter(std::string_view rest) {
  return rest.size() < kStringDelimiter.size() && kStringDelimiter.starts_with(rest);
}

std::string json_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.append({'\\', c});
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out.append(c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
    } else if (code < 0x20) {
      out.append(fmt::format("\\u{:04x}", code));
    } else {
      out.push_back(c);
    }
  }
  return out;
}

/// -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?, and within a double: many JSON parsers refuse a
/// whole text over a number like 1e999.
bool is_json_number(std::string_view text) {
  size_t at = text.starts_with('-') ? 1 : 0;
  const auto digits = [&] {
    const size_t begin = at;
    while (at < text.size() && is_digit(text[at])) {
      ++at;
    }
    return at - begin;
  };
  const auto next_is = [&](std::string_view any) {
    return at < text.size() && any.find(text[at]) != std::string_view::npos;
  };
  const bool zero = next_is("0");
  const size_t whole = digits();
  if (whole == 0 || (zero && whole > 1)) {
    return false;
  }
  if (next_is(".")) {
    ++at;
    if (digits() == 0) {
      return false;
    }
  }
  if (next_is("eE")) {
    ++at;
    at += next_is("+-") ? 1 : 0;
    if (digits() == 0) {
      return false;
    }
  }
  double value = 0.0;
  return at == text.size() &&
         std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc();
}

std::string bare_json(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kWords = {{
      {"true", "true"},
      {"True", "true"},
      {"false", "false"},
      {"False", "false"},
      {"null", "null"},
      {"None", "null"},
      {"nil", "null"},
      {"undefined", "null"},
      {"", "null"},
  }};
  for (const auto& [word, json] : kWords) {
    if (word == text) {
      return std::string(json);
    }
  }
  return is_json_number(text) ? std::string(text) : fmt::format("\"{}\"", json_escaped(text));
}

/// The number of a \u escape with its four digits at the start of the text.
std::optional<uint32_t> escaped_unit(std::string_view text) {
  uint32_t code = 0;
  if (text.size() < 6 || !text.starts_with("\\u")) {
    return std::nullopt;
  }
  const auto result = std::from_chars(text.data() + 2, text.data() + 6, code, 16);
  return result.ptr == text.data() + 6 ? std::optional<uint32_t>(code) : std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

}  // namespace

void ToolCallParser::push(std::string_view text, std::string& arguments) {
  raw_.append(text);
  pending_.append(text);
  size_t at = 0;
  while (at < pending_.size()) {
    const size_t taken = step(std::string_view(pending_).substr(at), false, arguments);
    if (taken == 0) {
      break;
    }
    at += taken;
  }
  pending_.erase(0, at);
}

bool ToolCallParser::finish(std::string& arguments) {
  size_t at = 0;
  while (at < pending_.size()) {
    at += step(std::string_view(pending_).substr(at), true, arguments);
  }
  pending_.clear();
  if (!has_name()) {
    return false;
  }
  const bool complete = state_ == State::kDone && tidy_;
  if (state_ == State::kNativeString || state_ == State::kQuotedString) {
    arguments.append("\"");
  } else if (state_ == State::kBareValue) {
    end_bare_value(arguments);
  } else if (in_pair_) {
    arguments.append("null");
  }
  while (!open_.empty()) {
    arguments.push_back(open_.back().close);
    open_.pop_back();
  }
  state_ = State::kDone;
  return complete;
}

size_t ToolCallParser::step(std::string_view rest, bool at_end, std::string& arguments) {
  const bool delimiter_matters = state_ != State::kPrefix && state_ != State::kName &&
                                 state_ != State::kQuotedString && state_ != State::kQuotedKey;
  if (!at_end && delimiter_matters && may_be_delimiter(rest)) {
    return 0;
  }
  switch (state_) {
    case State::kPrefix:
      return prefix(rest, at_end);
    case State::kName:
      return name_character(rest.front(), arguments);
    case State::kKeyStart:
      return key_start(rest, arguments);
    case State::kBareKey:
      return bare_key(rest.front(), arguments);
    case State::kNativeKey:
    case State::kNativeString:
      return delimited(rest, arguments);
    case State::kQuotedKey:
    case State::kQuotedString:
      return quoted(rest, at_end, arguments);
    case State::kColon:
      if (rest.front() == ':') {
        end_key(arguments);
      } else {
        tidy_ = tidy_ && is_space(rest.front());
      }
      return 1;
    case State::kValueStart:
      return value_start(rest, arguments);
    case State::kBareValue:
      return bare_value(rest, arguments);
    case State::kAfterValue:
      return after_value(rest.front(), arguments);
    case State::kDone:
      tidy_ = tidy_ && is_space(rest.front());
      return 1;
    case State::kFailed:
      return rest.size();
  }
  return rest.size();
}

size_t ToolCallParser::prefix(std::string_view rest, bool at_end) {
  if (is_space(rest.front())) {
    return 1;
  }
  if (rest.starts_with(kCall)) {
    state_ = State::kName;
    return kCall.size();
  }
  if (!at_end && kCall.starts_with(rest)) {
    return 0;
  }
  state_ = State::kFailed;
  return rest.size();
}

size_t ToolCallParser::name_character(char c, std::string& arguments) {
  if (c == '{' && !trimmed(name_).empty()) {
    name_ = std::string(trimmed(name_));
    open('{', arguments);
  } else if ((is_name_character(c) && (name_.empty() || !is_space(name_.back()))) || is_space(c)) {
    if (!(is_space(c) && name_.empty())) {
      name_.push_back(c);
    }
  } else {
    state_ = State::kFailed;
  }
  return 1;
}

size_t ToolCallParser::key_start(std::string_view rest, std::string& arguments) {
  bare_.clear();
  const char c = rest.front();
  if (rest.starts_with(kStringDelimiter)) {
    state_ = State::kNativeKey;
    return kStringDelimiter.size();
  }
  if (c == '"' || c == '\'') {
    quote_ = c;
    state_ = State::kQuotedKey;
  } else if (c == '}' || c == ']') {
    close(c, arguments);
  } else if (c == ',') {
    tidy_ = false;
  } else if (!is_space(c)) {
    state_ = State::kBareKey;
    return bare_key(c, arguments);
  }
  return 1;
}

size_t ToolCallParser::bare_key(char c, std::string& arguments) {
  if (c == ':') {
    bare_ = std::string(trimmed(bare_));
    end_key(arguments);
  } else if (c == '}' || c == ',') {
    tidy_ = false;  // a word without a value
    bare_.clear();
    state_ = State::kAfterValue;
    return after_value(c, arguments);
  } else {
    bare_.push_back(c);
  }
  return 1;
}

/// Inside a string between delimiters: raw characters, no escapes.
size_t ToolCallParser::delimited(std::string_view rest, std::string& arguments) {
  const bool key = state_ == State::kNativeKey;
  if (rest.starts_with(kStringDelimiter)) {
    if (!key) {
      arguments.append("\"");
    }
    state_ = key ? State::kColon : State::kAfterValue;
    return kStringDelimiter.size();
  }
  put(rest.substr(0, 1), arguments);
  return 1;
}

/// Inside a string in plain quotes: JSON's escapes.
size_t ToolCallParser::quoted(std::string_view rest, bool at_end, std::string& arguments) {
  const bool key = state_ == State::kQuotedKey;
  if (rest.front() == quote_) {
    if (!key) {
      arguments.append("\"");
    }
    state_ = key ? State::kColon : State::kAfterValue;
    return 1;
  }
  if (rest.front() != '\\') {
    put(rest.substr(0, 1), arguments);
    return 1;
  }
  if (rest.size() < 2 && !at_end) {
    return 0;
  }
  constexpr std::string_view kEscapes = "n\nt\tr\rb\bf\f";
  const char c = rest.size() > 1 ? rest[1] : '\0';
  for (size_t i = 0; i < kEscapes.size(); i += 2) {
    if (kEscapes[i] == c) {
      put(kEscapes.substr(i + 1, 1), arguments);
      return 2;
    }
  }
  if (c == 'u') {
    return unicode_escape(rest, at_end, arguments);
  }
  if (c == '"' || c == '\'' || c == '\\' || c == '/') {
    put(rest.substr(1, 1), arguments);
    return 2;
  }
  put("\\", arguments);
  return 1;
}

/// At a backslash and "u": one character, of one escape or of a pair of surrogates.
size_t ToolCallParser::unicode_escape(std::string_view rest, bool at_end, std::string& arguments) {
  const std::optional<uint32_t> first = escaped_unit(rest);
  const bool high = first && *first >= 0xD800 && *first < 0xDC00;
  const bool pair_may_follow = high && std::string_view("\\u").starts_with(rest.substr(6, 2));
  if (!at_end && (rest.size() < 6 || (pair_may_follow && rest.size() < 12))) {
    return 0;
  }
  if (!first) {
    put("\\", arguments);
    return 1;
  }
  const std::optional<uint32_t> second = high ? escaped_unit(rest.substr(6)) : std::nullopt;
  const bool pair = second && *second >= 0xDC00 && *second < 0xE000;
  const uint32_t code = pair ? 0x10000 + ((*first - 0xD800) << 10U) + (*second - 0xDC00)
                        : *first >= 0xD800 && *first < 0xE000 ? kReplacementCharacter
                                                              : *first;
  std::string character;
  append_utf8(character, static_cast<char32_t>(code));
  put(character, arguments);
  return pair ? 12 : 6;
}

size_t ToolCallParser::value_start(std::string_view rest, std::string& arguments) {
  const char c = rest.front();
  if (rest.starts_with(kStringDelimiter) || c == '"' || c == '\'') {
    begin_value(arguments);
    arguments.append("\"");
    quote_ = c;
    state_ = c == kStringDelimiter.front() ? State::kNativeString : State::kQuotedString;
    return c == kStringDelimiter.front() ? kStringDelimiter.size() : 1;
  }
  if ((c == '{' || c == '[') && open_.size() < kMaxNesting) {
    begin_value(arguments);
    open(c, arguments);
    return 1;
  }
  if (is_space(c)) {
    return 1;
  }
  if ((c == ']' || c == '}' || c == ',') && !in_pair_) {
    tidy_ = tidy_ && c != ',';
    state_ = State::kAfterValue;
    return c == ',' ? 1 : after_value(c, arguments);
  }
  begin_value(arguments);
  bare_.clear();
  state_ = State::kBareValue;
  return bare_value(rest, arguments);
}

size_t ToolCallParser::bare_value(std::string_view rest, std::string& arguments) {
  const char c = rest.front();
  if (c == ',' || c == '}' || c == ']') {
    end_bare_value(arguments);
    return after_value(c, arguments);
  }
  bare_.push_back(c);
  return 1;
}

void ToolCallParser::end_bare_value(std::string& arguments) {
  arguments.append(bare_json(trimmed(bare_)));
  bare_.clear();
  state_ = State::kAfterValue;
}

size_t ToolCallParser::after_value(char c, std::string& arguments) {
  if (c == ',') {
    state_ = open_.back().close == '}' ? State::kKeyStart : State::kValueStart;
  } else if (c == '}' || c == ']') {
    close(c, arguments);
  } else {
    tidy_ = tidy_ && is_space(c);
  }
  return 1;
}

/// The key is read, and its colon.
void ToolCallParser::end_key(std::string& arguments) {
  begin_value(arguments);
  arguments.append(fmt::format("\"{}\":", json_escaped(bare_)));
  bare_.clear();
  in_pair_ = true;
  state_ = State::kValueStart;
}

/// A key or a value begins: the comma before it, where one is due.
void ToolCallParser::begin_value(std::string& arguments) {
  if (!std::exchange(in_pair_, false) && !std::exchange(open_.back().empty, false)) {
    arguments.push_back(',');
  }
}

void ToolCallParser::open(char bracket, std::string& arguments) {
  arguments.push_back(bracket);
  open_.push_back({.close = bracket == '{' ? '}' : ']'});
  state_ = bracket == '{' ? State::kKeyStart : State::kValueStart;
}

/// Closes the innermost container of that kind, and what is open inside it.
void ToolCallParser::close(char bracket, std::string& arguments) {
  const bool known = std::any_of(open_.begin(), open_.end(), [bracket](const Container& one) {
    return one.close == bracket;
  });
  if (!known) {
    tidy_ = false;
    return;
  }
  if (std::exchange(in_pair_, false)) {
    arguments.append("null");
  }
  bool found = false;
  while (!found) {
    found = open_.back().close == bracket;
    tidy_ = tidy_ && found;
    arguments.push_back(open_.back().close);
    open_.pop_back();
  }
  state_ = open_.empty() ? State::kDone : State::kAfterValue;
}

/// A character of a string, or of a key that is given out later.
void ToolCallParser::put(std::string_view text, std::string& arguments) {
  if (state_ == State::kNativeKey || state_ == State::kQuotedKey) {
    bare_.append(text);
  } else {
    arguments.append(json_escaped(text));
  }
}

}  // namespace octet
