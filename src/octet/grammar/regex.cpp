#include "octet/grammar/regex.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/utf8.h"
#include "octet/grammar/text_cursor.h"

namespace octet {
namespace {

const CodeSet kDigits = {{'0', '9'}};
const CodeSet kWordCharacters = {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}, {'_', '_'}};
const CodeSet kSpaces = {
    {'\t', '\r'}, {' ', ' '}, {0xA0, 0xA0}, {0x2028, 0x2029}, {0xFEFF, 0xFEFF}};
const CodeSet kLineEnds = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
class RegexParser : private TextCursor {
 public:
  RegexParser(
      std::string_view text,
      RegexMatch match,
      const WriteCharacters& write,
      const GrammarLimits& limits
  )
      : TextCursor(text), match_(match), write_(write), limits_(limits) {}

  PatternPtr run() {
    if (!is_valid_utf8(text_)) {
      fail("the expression is not valid UTF-8");
    }
    PatternPtr out = alternatives(0);
    if (at_ < text_.size()) {
      fail("this ')' closes nothing");
    }
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::kMalformed, fmt::format("regular expression, byte {}: {}", at_, what));
  }
  [[noreturn]] void unsupported(std::string_view what) const {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format("regular expression, byte {}: {} are not supported", at_, what)
    );
  }

  char32_t next() {
    const Utf8Step step = decode_utf8(text_, at_);
    at_ += static_cast<size_t>(step.length);
    return step.code_point;
  }

  PatternPtr anything() const { return repeat(write_({{0, kLastCodePoint}}), 0, kUnbounded); }

  /// Up to ")" or the end. At depth 0 each alternative may have its own anchors.
  PatternPtr alternatives(int depth) {
    if (depth > limits_.max_nesting) {
      throw Error(
          ErrorKind::kResourceExhausted,
          fmt::format("regular expression: nested more than {} levels deep", limits_.max_nesting)
      );
    }
    std::vector<PatternPtr> options;
    do {
      std::vector<PatternPtr> parts;
      bool anchored_start = false;
      if (depth == 0) {
        anchored_start = skip("^");
      }
      if (depth == 0 && match_ == RegexMatch::kSearch && !anchored_start) {
        parts.push_back(anything());
      }
      ended_ = false;
      while (!done() && text_[at_] != '|' && text_[at_] != ')') {
        parts.push_back(quantified(depth));
      }
      if (depth == 0 && match_ == RegexMatch::kSearch && !ended_) {
        parts.push_back(anything());
      }
      options.push_back(sequence(std::move(parts)));
    } while (skip("|"));
    return choice(std::move(options));
  }

  PatternPtr quantified(int depth) {
    if (ended_) {
      unsupported("characters behind the anchor $");
    }
    if (skip("$")) {
      if (depth > 0) {
        unsupported("anchors inside groups");
      }
      ended_ = true;
      return sequence({});
    }
    PatternPtr part = atom(depth);
    int64_t repeats = 1;
    while (!done()) {
      int64_t min = 1;
      int64_t max = 1;
      if (skip("*")) {
        min = 0;
        max = kUnbounded;
      } else if (skip("+")) {
        max = kUnbounded;
      } else if (skip("?")) {
        min = 0;
      } else if (text_[at_] == '{') {
        if (!counts(min, max)) {
          fail("'{' needs a count such as {2}, {2,} or {2,5}; write \\{ for the character");
        }
      } else {
        break;
      }
      skip("?");  // lazy: the same texts
      if (++repeats > 3) {
        fail("too many repetitions in a row");
      }
      part = repeat(std::move(part), min, max);
    }
    return part;
  }

  bool counts(int64_t& min, int64_t& max) {
    ++at_;
    const std::optional<int64_t> low = count("regular expression");
    min = low.value_or(0);
    max = min;
    if (skip(",")) {
      max = count("regular expression").value_or(kUnbounded);
    } else if (!low) {
      return false;
    }
    if (max != kUnbounded && max < min) {
      fail("the counts are in the wrong order");
    }
    return skip("}");
  }

  PatternPtr atom(int depth) {
    if (skip("(")) {
      group_start();
      PatternPtr inside = alternatives(depth + 1);
      if (!skip(")")) {
        fail("this group is never closed");
      }
      return inside;
    }
    if (skip("[")) {
      return write_(bracket());
    }
    if (skip(".")) {
      return write_(complement(kLineEnds));
    }
    if (skip("\\")) {
      return write_(escape(false));
    }
    if (std::string_view("*+?{").find(text_[at_]) != std::string_view::npos) {
      fail("there is nothing to repeat");
    }
    if (text_[at_] == '^') {
      unsupported("anchors inside");
    }
    const char32_t c = next();
    return write_({{c, c}});
  }

  void group_start() {
    if (!skip("?")) {
      return;
    }
    if (skip(":")) {
      return;
    }
    if (skip("=") || skip("!") || skip("<=") || skip("<!")) {
      unsupported("look-ahead and look-behind");
    }
    if (skip("P<") || skip("<")) {
      const size_t end = text_.find('>', at_);
      if (end == std::string_view::npos) {
        fail("the name of this group is never closed");
      }
      at_ = end + 1;
      return;
    }
    unsupported("groups with flags");
  }

  /// Behind a backslash.
  CodeSet escape(bool in_set) {
    if (done()) {
      fail("the expression ends with a backslash");
    }
    const char32_t c = next();
    switch (c) {
      case 'd':
        return kDigits;
      case 'D':
        return complement(kDigits);
      case 'w':
        return kWordCharacters;
      case 'W':
        return complement(kWordCharacters);
      case 's':
        return kSpaces;
      case 'S':
        return complement(kSpaces);
      case 'n':
        return {{'\n', '\n'}};
      case 'r':
        return {{'\r', '\r'}};
      case 't':
        return {{'\t', '\t'}};
      case 'f':
        return {{'\f', '\f'}};
      case 'v':
        return {{'\v', '\v'}};
      case '0':
        return {{0, 0}};
      case 'x':
        return one(hexadecimal(2));
      case 'u':
        return one(skip("{") ? braced() : hexadecimal(4));
      case 'b':
        if (in_set) {
          return {{'\b', '\b'}};
        }
        unsupported("word borders");
      case 'B':
        unsupported("word borders");
      case 'p':
      case 'P':
        unsupported("Unicode properties");
      default:
        break;
    }
    if (c >= '1' && c <= '9') {
      unsupported("back references");
    }
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      fail(fmt::format("the escape \\{} has no meaning", static_cast<char>(c)));
    }
    return one(c);
  }

  static CodeSet one(char32_t c) { return {{c, c}}; }

  char32_t hexadecimal(int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const char32_t c = done() ? 0 : next();
      const int digit = c >= '0' && c <= '9'   ? static_cast<int>(c - '0')
                        : c >= 'a' && c <= 'f' ? static_cast<int>(c - 'a') + 10
                        : c >= 'A' && c <= 'F' ? static_cast<int>(c - 'A') + 10
                                               : -1;
      if (digit < 0) {
        fail("this escape needs more hexadecimal digits");
      }
      value = value * 16 + static_cast<char32_t>(digit);
    }
    return value;
  }

  char32_t braced() {
    const size_t end = text_.find('}', at_);
    if (end == std::string_view::npos || end == at_ || end - at_ > 6) {
      fail("this escape needs one to six hexadecimal digits");
    }
    const char32_t value = hexadecimal(static_cast<int>(end - at_));
    ++at_;
    return value;
  }

  /// Behind "[".
  CodeSet bracket() {
    const bool negated = skip("^");
    CodeSet set;
    bool first = true;
    while (first || done() || text_[at_] != ']') {
      if (done()) {
        fail("this set of characters is never closed");
      }
      if (first && text_[at_] == ']') {
        break;
      }
      first = false;
      CodeSet low = set_member();
      const bool range = text_.substr(at_).starts_with('-') && !text_.substr(at_).starts_with("-]");
      if (!range) {
        set.insert(set.end(), low.begin(), low.end());
        continue;
      }
      ++at_;
      const CodeSet high = set_member();
      if (low.size() != 1 || high.size() != 1 || low[0].first != low[0].last ||
          high[0].first != high[0].last || low[0].first > high[0].first) {
        fail("this range of characters is none");
      }
      set.push_back({low[0].first, high[0].first});
    }
    ++at_;
    return negated ? complement(std::move(set)) : normalized(std::move(set));
  }

  CodeSet set_member() {
    if (done()) {
      fail("this set of characters is never closed");
    }
    if (skip("\\")) {
      return escape(true);
    }
    return one(next());
  }

  RegexMatch match_;
  const WriteCharacters& write_;
  const GrammarLimits& limits_;
  bool ended_ = false;  // behind "$"
};

}  // namespace

PatternPtr regex_pattern(
    std::string_view expression,
    RegexMatch match,
    const WriteCharacters& write,
    const GrammarLimits& limits
) {
  return RegexParser(expression, match, write, limits).run();
}

}  // namespace octet
