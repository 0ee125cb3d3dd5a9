#include "octet/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/utf8.h"
#include "octet/jinja/text.h"

namespace octet::jinja {
namespace {

constexpr std::array<std::string_view, 25> kOperators = {
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ","};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         (static_cast<unsigned char>(c) & 0x80U) != 0;
}
bool is_blank(std::string_view text) {
  return stripped(text, Sides::kBoth).end == 0;
}

/// All line ends become "\n"; a single one at the end of the source is not text.
std::string normalized(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out.push_back('\n');
      i += i + 1 < source.size() && source[i + 1] == '\n' ? 1 : 0;
    } else {
      out.push_back(source[i]);
    }
  }
  if (out.ends_with('\n')) {
    out.pop_back();
  }
  return out;
}

/// How an opening or closing mark treats the white space beside it.
enum class Trim : uint8_t { kDefault, kStrip, kKeep };

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalized(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) {
      text_until_tag();
    }
    add(TokenKind::kEnd, "", at_);
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  bool next_is(std::string_view text) const { return rest().starts_with(text); }

  /// The line and column of a byte; called with bytes in ascending order.
  Location locate(size_t at) {
    while (located_ < at) {
      if (source_[located_] == '\n') {
        ++location_.line;
        location_.column = 0;
      }
      ++location_.column;
      ++located_;
    }
    return location_;
  }

  void add(TokenKind kind, std::string text, size_t at) {
    tokens_.push_back({.kind = kind, .text = std::move(text), .location = locate(at)});
  }

  static bool opens_tag(std::string_view text) {
    return text.size() >= 2 && text[0] == '{' &&
           (text[1] == '{' || text[1] == '%' || text[1] == '#');
  }

  void text_until_tag() {
    size_t open = at_;
    while (open < source_.size() && !opens_tag(std::string_view(source_).substr(open))) {
      ++open;
    }
    if (open == source_.size()) {
      add_data(at_, open);
      at_ = open;
      return;
    }
    const char mark = source_[open + 1];
    const Trim trim = trim_at(open + 2);
    add_data(at_, open_end_of_text(open, mark, trim));
    at_ = open + 2 + (trim == Trim::kDefault ? 0 : 1);
    if (mark == '#') {
      comment(open);
    } else if (mark == '{') {
      tag(open, TokenKind::kPrintBegin);
    } else if (!raw(open)) {
      tag(open, TokenKind::kBlockBegin);
    }
  }

  Trim trim_at(size_t at) const {
    return at >= source_.size() ? Trim::kDefault
           : source_[at] == '-' ? Trim::kStrip
           : source_[at] == '+' ? Trim::kKeep
                                : Trim::kDefault;
  }

  /// Where the text before a tag ends, white space that the tag takes away excluded.
  size_t open_end_of_text(size_t open, char mark, Trim trim) const {
    const std::string_view text = std::string_view(source_).substr(at_, open - at_);
    if (trim == Trim::kStrip) {
      return at_ + stripped(text, Sides::kRight).end;
    }
    if (trim == Trim::kDefault && mark != '{') {
      const size_t newline = text.rfind('\n');
      const size_t line = newline == std::string_view::npos ? 0 : newline + 1;
      const bool whole_line = line > 0 || at_ == 0 || source_[at_ - 1] == '\n';
      if (whole_line && is_blank(text.substr(line))) {
        return at_ + line;
      }
    }
    return open;
  }

  void add_data(size_t begin, size_t end) {
    if (begin < end) {
      add(TokenKind::kData, source_.substr(begin, end - begin), begin);
    }
  }

  /// Moves behind a closing mark ("%}", with its sign) at the current place; false when there is
  /// none. `keeps`: "+" before the mark is allowed.
  bool close(std::string_view mark, bool trims_newline) {
    const Trim trim = trim_at(at_);
    const size_t sign = trim == Trim::kDefault || (trim == Trim::kKeep && !trims_newline) ? 0 : 1;
    if (!rest().substr(std::min(sign, rest().size())).starts_with(mark)) {
      return false;
    }
    at_ += sign + mark.size();
    if (sign == 1 && trim == Trim::kStrip) {
      skip_space();
    } else if (sign == 0 && trims_newline && next_is("\n")) {
      ++at_;
    }
    return true;
  }

  void skip_space() {
    while (at_ < source_.size()) {
      const Utf8Step step = decode_utf8(source_, at_);
      if (step.status != Utf8Status::kValid || !is_space(step.code_point)) {
        return;
      }
      at_ += static_cast<size_t>(step.length);
    }
  }

  void comment(size_t open) {
    const size_t end = source_.find("#}", at_);
    if (end == std::string::npos) {
      fail_malformed(locate(open), "this comment is never closed with #}");
    }
    at_ = end > at_ && (source_[end - 1] == '-' || source_[end - 1] == '+') ? end - 1 : end;
    close("#}", true);
  }

  /// At the name of a block tag: takes a whole {% raw %} ... {% endraw %}; false when it is none.
  bool raw(size_t open) {
    const size_t start = at_;
    skip_space();
    if (next_is("raw")) {
      at_ += 3;
      skip_space();
      if (const Trim trim = trim_at(at_); trim != Trim::kKeep && close("%}", false)) {
        raw_text(open);
        return true;
      }
    }
    at_ = start;
    return false;
  }

  void raw_text(size_t open) {
    const size_t begin = at_;
    for (size_t tag = source_.find("{%", begin); tag != std::string::npos;
         tag = source_.find("{%", tag + 2)) {
      const Trim trim = trim_at(tag + 2);
      at_ = tag + 2 + (trim == Trim::kDefault ? 0 : 1);
      skip_space();
      if (!next_is("endraw")) {
        continue;
      }
      at_ += 6;
      skip_space();
      const size_t after_name = at_;
      if (!close("%}", true)) {
        at_ = after_name;
        continue;
      }
      const size_t behind = std::exchange(at_, begin);
      add_data(begin, open_end_of_text(tag, '%', trim));
      at_ = behind;
      return;
    }
    fail_malformed(locate(open), "this raw block is never closed with {% endraw %}");
  }

  /// The inside of {{ }} or {% %}.
  void tag(size_t open, TokenKind begin) {
    const bool print = begin == TokenKind::kPrintBegin;
    add(begin, "", open);
    std::string open_brackets;
    while (true) {
      skip_space();
      if (at_ >= source_.size()) {
        fail_malformed(locate(open), print ? "this {{ is never closed" : "this {% is never closed");
      }
      const size_t start = at_;
      if (open_brackets.empty() && close(print ? "}}" : "%}", !print)) {
        add(print ? TokenKind::kPrintEnd : TokenKind::kBlockEnd, "", start);
        return;
      }
      inner_token(open_brackets);
    }
  }

  void inner_token(std::string& open_brackets) {
    const char c = source_[at_];
    if (is_digit(c)) {
      number();
    } else if (is_name_start(c)) {
      const size_t start = at_;
      while (at_ < source_.size() && (is_name_start(source_[at_]) || is_digit(source_[at_]))) {
        ++at_;
      }
      add(TokenKind::kName, source_.substr(start, at_ - start), start);
    } else if (c == '"' || c == '\'') {
      string(c);
    } else {
      symbol(open_brackets);
    }
  }

  void symbol(std::string& open_brackets) {
    const auto found = std::find_if(kOperators.begin(), kOperators.end(), [this](auto text) {
      return next_is(text);
    });
    if (found == kOperators.end()) {
      fail_malformed(
          locate(at_), fmt::format("the character '{}' has no meaning here", source_[at_])
      );
    }
    const char c = found->front();
    if (c == '(' || c == '[' || c == '{') {
      open_brackets.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (c == ')' || c == ']' || c == '}') {
      if (open_brackets.empty() || open_brackets.back() != c) {
        fail_malformed(locate(at_), fmt::format("this '{}' closes nothing", c));
      }
      open_brackets.pop_back();
    }
    add(TokenKind::kOperator, std::string(*found), at_);
    at_ += found->size();
  }

  void digits(std::string& out) {
    while (at_ < source_.size() && (is_digit(source_[at_]) || source_[at_] == '_')) {
      if (source_[at_] != '_') {
        out.push_back(source_[at_]);
      }
      ++at_;
    }
  }

  void number() {
    const size_t start = at_;
    std::string text;
    digits(text);
    bool real = false;
    const bool behind_dot = start > 0 && source_[start - 1] == '.';  // an index: a.0.1
    const auto digit_at = [this](size_t at) {
      return at < source_.size() && is_digit(source_[at]);
    };
    if (!behind_dot && next_is(".") && digit_at(at_ + 1)) {
      real = true;
      ++at_;
      text.push_back('.');
      digits(text);
    }
    if (!behind_dot && (next_is("e") || next_is("E"))) {
      const bool sign =
          at_ + 1 < source_.size() && (source_[at_ + 1] == '-' || source_[at_ + 1] == '+');
      if (digit_at(at_ + (sign ? 2 : 1))) {
        real = true;
        text.append(source_, at_, sign ? 2 : 1);
        at_ += sign ? 2 : 1;
        digits(text);
      }
    }
    add(real ? TokenKind::kReal : TokenKind::kInteger, std::move(text), start);
  }

  void string(char quote) {
    const size_t start = at_++;
    std::string text;
    while (at_ < source_.size() && source_[at_] != quote) {
      if (source_[at_] == '\\' && at_ + 1 < source_.size()) {
        ++at_;
        escape(text);
      } else {
        text.push_back(source_[at_++]);
      }
    }
    if (at_ >= source_.size()) {
      fail_malformed(locate(start), "this string is never closed");
    }
    ++at_;
    add(TokenKind::kString, std::move(text), start);
  }

  /// Python's escapes; a backslash before anything else stays.
  void escape(std::string& out) {
    static constexpr std::string_view kShort = "\\\\''\"\"n\nt\tr\rb\bf\fv\va\a";
    const char c = source_[at_];
    for (size_t i = 0; i < kShort.size(); i += 2) {
      if (kShort[i] == c) {
        out.push_back(kShort[i + 1]);
        ++at_;
        return;
      }
    }
    if (c == '\n') {
      ++at_;
    } else if (c >= '0' && c <= '7') {
      append_code(out, 0, 3, 8);
    } else if (c == 'x' || c == 'u' || c == 'U') {
      append_code(out, 1, c == 'x' ? 2 : c == 'u' ? 4 : 8, 16);
    } else {
      out.push_back('\\');
    }
  }

  void append_code(std::string& out, size_t prefix, size_t most, int base) {
    const size_t start = at_ - 1;
    at_ += prefix;
    uint32_t code = 0;
    size_t count = 0;
    for (; count < most && at_ < source_.size(); ++count, ++at_) {
      const char c = source_[at_];
      const int digit = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : base;
      if (digit >= base) {
        break;
      }
      code = code * static_cast<uint32_t>(base) + static_cast<uint32_t>(digit);
    }
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    if ((base == 16 && count < most) || surrogate || code > 0x10FFFF) {
      fail_malformed(locate(start), "this escape names no character");
    }
    append_utf8(out, static_cast<char32_t>(code));
  }

  std::string source_;
  size_t at_ = 0;
  size_t located_ = 0;
  Location location_;
  std::vector<Token> tokens_;
};

}  // namespace

void fail_malformed(Location location, const std::string& message) {
  throw Error(
      ErrorKind::kMalformed,
      fmt::format("line {}, column {}: {}", location.line, location.column, message)
  );
}

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(source).run();
}

}  // namespace octet::jinja
