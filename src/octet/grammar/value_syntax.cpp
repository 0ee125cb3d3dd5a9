#include "octet/grammar/value_syntax.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/base/utf8.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxDigits = 16;
constexpr int64_t kLargest = 9'999'999'999'999'999;  // of kMaxDigits digits

CodeSet intersection(const CodeSet& a, const CodeSet& b) {
  CodeSet out = complement(a);
  const CodeSet other = complement(b);
  out.insert(out.end(), other.begin(), other.end());
  return complement(std::move(out));
}

PatternPtr digits(int64_t min, int64_t max) {
  return repeat(characters({{'0', '9'}}), min, max);
}

PatternPtr hexadecimal(int64_t count) {
  return repeat(characters({{'0', '9'}, {'a', 'f'}, {'A', 'F'}}), count, count);
}

class JsonSyntax : public ValueSyntax {
 public:
  PatternPtr string_characters(const CodeSet& set) const override {
    static const CodeSet kPlain = complement({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}});
    std::vector<PatternPtr> options = {characters(intersection(set, kPlain))};
    constexpr std::pair<char32_t, char> kShort[] = {
        {'"', '"'},
        {'\\', '\\'},
        {'/', '/'},
        {'\b', 'b'},
        {'\f', 'f'},
        {'\n', 'n'},
        {'\r', 'r'},
        {'\t', 't'}};
    for (const auto& [character, letter] : kShort) {
      if (contains(set, character)) {
        options.push_back(literal(std::string{'\\', letter}));
      }
    }
    if (complement(set).empty()) {
      options.push_back(any_escape());
      return choice(std::move(options));
    }
    for (char32_t control = 0; control < 0x20; ++control) {
      if (contains(set, control)) {
        options.push_back(literal(fmt::format("\\u{:04x}", static_cast<uint32_t>(control))));
      }
    }
    return choice(std::move(options));
  }

  PatternPtr constant_string(const std::string& text) const override {
    return literal(Json(text).dump());
  }
  PatternPtr string(PatternPtr content) const override {
    return sequence({literal("\""), std::move(content), literal("\"")});
  }
  PatternPtr key(std::string_view name) const override {
    return sequence({literal(Json(name).dump()), colon()});
  }
  PatternPtr other_key(const std::vector<std::string>& names) const override {
    const CodeSet plain = complement({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}});
    return sequence({string(any_but(names, plain)), colon()});
  }
  PatternPtr open(std::string_view bracket) const override {
    return sequence({literal(bracket), optional(line())});
  }
  PatternPtr close(std::string_view bracket) const override {
    return sequence({optional(line()), literal(bracket)});
  }
  PatternPtr comma() const override {
    return sequence({literal(","), optional(choice({literal(" "), line()}))});
  }
  bool sorts_members() const override { return false; }

 private:
  static PatternPtr line() { return sequence({literal("\n"), repeat(literal(" "), 0, 32)}); }
  static PatternPtr colon() { return sequence({literal(":"), optional(literal(" "))}); }

  /// Escapes by \u for all of Unicode: a surrogate only as half of a pair.
  static PatternPtr any_escape() {
    const PatternPtr first_eight =
        characters({{'0', '9'}, {'a', 'c'}, {'A', 'C'}, {'e', 'f'}, {'E', 'F'}});
    const PatternPtr d = characters({{'d', 'd'}, {'D', 'D'}});
    const PatternPtr high =
        sequence({d, characters({{'8', '9'}, {'a', 'b'}, {'A', 'B'}}), hexadecimal(2)});
    const PatternPtr low = sequence({d, characters({{'c', 'f'}, {'C', 'F'}}), hexadecimal(2)});
    return sequence(
        {literal("\\u"),
         choice(
             {sequence({first_eight, hexadecimal(3)}),
              sequence({d, characters({{'0', '7'}}), hexadecimal(2)}),
              sequence({high, literal("\\u"), low})}
         )}
    );
  }
};

class CallSyntax : public ValueSyntax {
 public:
  explicit CallSyntax(TokenId quote) : quote_(control_token(quote)) {}

  PatternPtr string_characters(const CodeSet& set) const override { return characters(set); }
  PatternPtr constant_string(const std::string& text) const override {
    return string(literal(text));
  }
  PatternPtr string(PatternPtr content) const override {
    return sequence({quote_, std::move(content), quote_});
  }
  PatternPtr key(std::string_view name) const override {
    const bool bare = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '-' || c == '.' || c == '$' || c == '@';
    });
    return sequence({bare ? literal(name) : string(literal(name)), literal(":")});
  }
  PatternPtr other_key(const std::vector<std::string>& names) const override {
    const CodeSet bare = {{'a', 'z'}, {'A', 'Z'}, {'0', '9'}, {'_', '_'}, {'-', '.'}};
    std::vector<std::string> excluded = names;
    excluded.emplace_back();  // nor an empty one
    return sequence({any_but(excluded, bare), literal(":")});
  }
  PatternPtr open(std::string_view bracket) const override { return literal(bracket); }
  PatternPtr close(std::string_view bracket) const override { return literal(bracket); }
  PatternPtr comma() const override { return literal(","); }
  bool sorts_members() const override { return true; }

 private:
  PatternPtr quote_;
};

// Ranges of numbers of one length, digit by digit.

PatternPtr at_least(std::string_view low) {
  if (low.empty()) {
    return sequence({});
  }
  const auto rest = static_cast<int64_t>(low.size()) - 1;
  std::vector<PatternPtr> options = {
      sequence({literal(low.substr(0, 1)), at_least(low.substr(1))})};
  if (low[0] < '9') {
    options.push_back(
        sequence({characters({{static_cast<char32_t>(low[0]) + 1, '9'}}), digits(rest, rest)})
    );
  }
  return choice(std::move(options));
}

PatternPtr at_most(std::string_view high) {
  if (high.empty()) {
    return sequence({});
  }
  const auto rest = static_cast<int64_t>(high.size()) - 1;
  std::vector<PatternPtr> options = {
      sequence({literal(high.substr(0, 1)), at_most(high.substr(1))})};
  if (high[0] > '0') {
    options.push_back(
        sequence({characters({{'0', static_cast<char32_t>(high[0]) - 1}}), digits(rest, rest)})
    );
  }
  return choice(std::move(options));
}

PatternPtr between(std::string_view low, std::string_view high) {
  if (low.empty()) {
    return sequence({});
  }
  if (low[0] == high[0]) {
    return sequence({literal(low.substr(0, 1)), between(low.substr(1), high.substr(1))});
  }
  const auto rest = static_cast<int64_t>(low.size()) - 1;
  std::vector<PatternPtr> options = {
      sequence({literal(low.substr(0, 1)), at_least(low.substr(1))}),
      sequence({literal(high.substr(0, 1)), at_most(high.substr(1))})};
  if (high[0] - low[0] > 1) {
    options.push_back(sequence(
        {characters({{static_cast<char32_t>(low[0]) + 1, static_cast<char32_t>(high[0]) - 1}}),
         digits(rest, rest)}
    ));
  }
  return choice(std::move(options));
}

/// 0 <= low <= high.
void add_lengths(
    int64_t low, int64_t high, std::string_view sign, std::vector<PatternPtr>& options
) {
  for (int64_t length = 1, first = 0, last = 9; length <= kMaxDigits; ++length) {
    const int64_t from = std::max(low, first);
    const int64_t to = std::min(high, last);
    if (from <= to) {
      options.push_back(sequence({literal(sign), between(std::to_string(from), std::to_string(to))})
      );
    }
    first = last + 1;
    last = last * 10 + 9;
  }
}

}  // namespace

PatternPtr ValueSyntax::constant(const Json& value) const {
  if (value.is_string()) {
    return constant_string(value.get_ref<const std::string&>());
  }
  if (value.is_array() || value.is_object()) {
    std::vector<PatternPtr> parts = {open(value.is_array() ? "[" : "{")};
    bool first = true;
    for (const auto& [name, item] : value.items()) {
      if (!std::exchange(first, false)) {
        parts.push_back(comma());
      }
      if (value.is_object()) {
        parts.push_back(key(name));
      }
      parts.push_back(constant(item));
    }
    parts.push_back(close(value.is_array() ? "]" : "}"));
    return sequence(std::move(parts));
  }
  return literal(value.dump());
}

std::unique_ptr<const ValueSyntax> json_syntax() {
  return std::make_unique<JsonSyntax>();
}
std::unique_ptr<const ValueSyntax> call_syntax(TokenId quote) {
  return std::make_unique<CallSyntax>(quote);
}

/// Follows the tree of all names: leaves it at a character that no name has there, or stops inside
/// a name.
PatternPtr any_but(const std::vector<std::string>& names, const CodeSet& set) {
  bool is_name = false;
  std::map<char32_t, std::vector<std::string>> rests;
  for (const std::string& name : names) {
    if (name.empty()) {
      is_name = true;
      continue;
    }
    const Utf8Step step = decode_utf8(name, 0);
    rests[step.code_point].push_back(name.substr(static_cast<size_t>(step.length)));
  }
  CodeSet taken = complement(set);
  std::vector<PatternPtr> options;
  if (!is_name) {
    options.push_back(sequence({}));
  }
  for (auto& [character, rest] : rests) {
    taken.push_back({character, character});
    if (contains(set, character)) {
      options.push_back(sequence({characters({{character, character}}), any_but(rest, set)}));
    }
  }
  options.push_back(
      sequence({characters(complement(std::move(taken))), repeat(characters(set), 0, kUnbounded)})
  );
  return choice(std::move(options));
}

PatternPtr any_integer() {
  return sequence(
      {optional(literal("-")),
       choice({literal("0"), sequence({characters({{'1', '9'}}), digits(0, kMaxDigits - 1)})})}
  );
}

PatternPtr any_number() {
  const PatternPtr fraction = sequence({literal("."), digits(1, 17)});
  const PatternPtr exponent = sequence(
      {characters({{'e', 'e'}, {'E', 'E'}}),
       optional(characters({{'+', '+'}, {'-', '-'}})),
       digits(1, 2)}
  );
  return sequence({any_integer(), optional(fraction), optional(exponent)});
}

PatternPtr integer_range(int64_t low, int64_t high) {
  low = std::max(low, -kLargest);
  high = std::min(high, kLargest);
  std::vector<PatternPtr> options;
  if (low < 0 && low <= high) {
    add_lengths(std::max<int64_t>(1, -high), -low, "-", options);
  }
  if (high >= 0 && low <= high) {
    add_lengths(std::max<int64_t>(0, low), high, "", options);
  }
  return choice(std::move(options));
}

}  // namespace octet
