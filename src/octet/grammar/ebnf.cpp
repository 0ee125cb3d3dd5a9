#include "octet/grammar/ebnf.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/utf8.h"
#include "octet/grammar/text_cursor.h"

namespace octet {
namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

class EbnfParser : private TextCursor {
 public:
  EbnfParser(PatternRules& rules, std::string_view text, const GrammarLimits& limits)
      : TextCursor(text), rules_(rules), limits_(limits) {}

  int run() {
    if (!is_valid_utf8(text_)) {
      fail("the grammar is not valid UTF-8");
    }
    skip_space(true);
    while (!done()) {
      definition();
      skip_space(true);
    }
    for (const auto& [name, index] : indices_) {
      if (rules_.rules[static_cast<size_t>(index)] == nullptr) {
        throw Error(
            ErrorKind::kMalformed, fmt::format("grammar: the rule '{}' is not defined", name)
        );
      }
    }
    const auto root = indices_.find("root");
    if (root == indices_.end()) {
      throw Error(ErrorKind::kMalformed, "grammar: there is no rule 'root'");
    }
    return root->second;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    const auto line =
        1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    throw Error(ErrorKind::kMalformed, fmt::format("grammar, line {}: {}", line, what));
  }

  void skip_space(bool newlines) {
    while (!done()) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == ' ' || c == '\t' || (newlines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string name() {
    const size_t start = at_;
    while (!done() && is_name_character(text_[at_])) {
      ++at_;
    }
    if (at_ == start) {
      fail("expected the name of a rule");
    }
    return std::string(text_.substr(start, at_ - start));
  }

  int index_of(const std::string& rule_name) {
    const auto known = indices_.find(rule_name);
    if (known != indices_.end()) {
      return known->second;
    }
    const int index = rules_.add(nullptr, rule_name);
    indices_.emplace(rule_name, index);
    return index;
  }

  void definition() {
    const std::string rule_name = name();
    skip_space(false);
    if (!skip("::=")) {
      fail("expected '::=' behind the name of the rule");
    }
    const auto index = static_cast<size_t>(index_of(rule_name));
    if (rules_.rules[index] != nullptr) {
      fail(fmt::format("the rule '{}' is defined twice", rule_name));
    }
    skip_space(true);
    PatternPtr pattern = alternatives(0);
    rules_.rules[index] = std::move(pattern);
    if (!done() && text_[at_] != '\n' && text_[at_] != '\r') {
      fail(fmt::format("'{}' is not expected here", text_[at_]));
    }
  }

  /// The next rule begins here: a name and "::=".
  bool at_definition() {
    const size_t start = at_;
    while (!done() && is_name_character(text_[at_])) {
      ++at_;
    }
    const bool named = at_ > start;
    skip_space(false);
    const bool found = named && text_.substr(at_).starts_with("::=");
    at_ = start;
    return found;
  }

  PatternPtr alternatives(int depth) {
    if (depth > limits_.max_nesting) {
      throw Error(
          ErrorKind::kResourceExhausted,
          fmt::format("grammar: nested more than {} levels deep", limits_.max_nesting)
      );
    }
    std::vector<PatternPtr> options;
    while (true) {
      options.push_back(parts(depth));
      // An alternative may go on in the next line.
      const size_t before = at_;
      skip_space(true);
      if (!skip("|")) {
        at_ = depth > 0 ? at_ : before;
        return choice(std::move(options));
      }
      skip_space(true);
    }
  }

  PatternPtr parts(int depth) {
    std::vector<PatternPtr> out;
    while (true) {
      skip_space(depth > 0);
      if (done() || text_[at_] == '|' || text_[at_] == ')' || text_[at_] == '\n' ||
          text_[at_] == '\r' || at_definition()) {
        return sequence(std::move(out));
      }
      out.push_back(repeated(depth));
    }
  }

  PatternPtr repeated(int depth) {
    PatternPtr part = atom(depth);
    for (int repeats = 0; !done(); ++repeats) {
      int64_t min = 0;
      int64_t max = kUnbounded;
      if (skip("+")) {
        min = 1;
      } else if (skip("?")) {
        max = 1;
      } else if (skip("{")) {
        counts(min, max);
      } else if (!skip("*")) {
        break;
      }
      if (repeats > 2) {
        fail("too many repetitions in a row");
      }
      part = repeat(std::move(part), min, max);
    }
    return part;
  }

  std::optional<int64_t> number() {
    skip_space(false);
    const std::optional<int64_t> value = count("grammar");
    skip_space(false);
    return value;
  }

  void counts(int64_t& min, int64_t& max) {
    const std::optional<int64_t> low = number();
    min = low.value_or(0);
    max = min;
    if (skip(",")) {
      max = number().value_or(kUnbounded);
    } else if (!low) {
      fail("'{' needs a count such as {2}, {2,} or {2,5}");
    }
    if (!skip("}") || (max != kUnbounded && max < min)) {
      fail("'{' needs a count such as {2}, {2,} or {2,5}");
    }
  }

  PatternPtr atom(int depth) {
    if (skip("(")) {
      PatternPtr inside = alternatives(depth + 1);
      skip_space(true);
      if (!skip(")")) {
        fail("this group is never closed");
      }
      return inside;
    }
    if (skip("\"")) {
      std::string bytes;
      while (!skip("\"")) {
        append_utf8(bytes, character("this string is never closed"));
      }
      return literal(bytes);
    }
    if (skip("[")) {
      return set();
    }
    if (skip(".")) {
      return characters({{0, kLastCodePoint}});
    }
    return rule(index_of(name()));
  }

  PatternPtr set() {
    const bool negated = skip("^");
    CodeSet out;
    while (!skip("]")) {
      const char32_t first = character("this set of characters is never closed");
      char32_t last = first;
      if (text_.substr(at_).starts_with('-') && !text_.substr(at_).starts_with("-]")) {
        ++at_;
        last = character("this set of characters is never closed");
      }
      if (last < first) {
        fail("this range of characters is none");
      }
      out.push_back({first, last});
    }
    return characters(negated ? complement(std::move(out)) : std::move(out));
  }

  /// One character of a string or set, escapes resolved.
  char32_t character(const char* at_end) {
    if (done() || text_[at_] == '\n') {
      fail(at_end);
    }
    if (!skip("\\")) {
      const Utf8Step step = decode_utf8(text_, at_);
      at_ += static_cast<size_t>(step.length);
      return step.code_point;
    }
    const char c = done() ? '\0' : text_[at_++];
    switch (c) {
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'x':
        return hexadecimal(2);
      case 'u':
        return hexadecimal(4);
      case 'U':
        return hexadecimal(8);
      default:
        break;
    }
    if (std::string_view("\"\\[]^-'").find(c) == std::string_view::npos || c == '\0') {
      fail("this escape has no meaning");
    }
    return static_cast<char32_t>(c);
  }

  char32_t hexadecimal(int digits) {
    uint32_t value = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      const char c = done() ? '\0' : text_[at_];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) {
        fail("this escape needs more hexadecimal digits");
      }
      value = value * 16 + static_cast<uint32_t>(digit);
    }
    if (value > kLastCodePoint || (value >= 0xD800 && value <= 0xDFFF)) {
      fail("this escape names no character");
    }
    return static_cast<char32_t>(value);
  }

  PatternRules& rules_;
  const GrammarLimits& limits_;
  std::map<std::string, int, std::less<>> indices_;
};

}  // namespace

int add_ebnf_rules(PatternRules& rules, std::string_view source, const GrammarLimits& limits) {
  return EbnfParser(rules, source, limits).run();
}

}  // namespace octet
