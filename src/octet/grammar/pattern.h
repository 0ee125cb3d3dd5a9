// What a text may look like, as a tree: the one form that schemas, expressions, grammars and tool
// calls are translated to before they become an automaton. Immutable and shared. Not for following
// a text (automaton.h). Invariant: sets hold no surrogates; repetitions have 0 <= min <= max or no
// max.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/token.h"

namespace octet {

struct Pattern;
using PatternPtr = std::shared_ptr<const Pattern>;

struct CodeRange {
  char32_t first = 0;
  char32_t last = 0;
};
using CodeSet = std::vector<CodeRange>;

inline constexpr char32_t kLastCodePoint = 0x10FFFF;
inline constexpr int64_t kUnbounded = -1;

struct Pattern {
  enum class Kind : uint8_t {
    kLiteral,     // bytes
    kCharacters,  // one character of set
    kToken,       // one control token
    kSequence,    // parts, one after the other
    kChoice,      // one of parts; none when empty
    kRepeat,      // parts[0], min to max times
    kRule,        // the rule of that index
  };
  Kind kind = Kind::kLiteral;
  std::string bytes = {};
  CodeSet set = {};
  TokenId token = 0;
  int rule = 0;
  int64_t min = 0;
  int64_t max = kUnbounded;
  std::vector<PatternPtr> parts = {};
};

/// Rules by index; they may refer to each other.
struct PatternRules {
  std::vector<PatternPtr> rules;
  std::vector<std::string> names;  // for messages
  int root = 0;

  int add(PatternPtr pattern, std::string name);
};

PatternPtr literal(std::string_view bytes);
PatternPtr characters(CodeSet set);
PatternPtr control_token(TokenId token);
PatternPtr sequence(std::vector<PatternPtr> parts);
PatternPtr choice(std::vector<PatternPtr> parts);
PatternPtr repeat(PatternPtr part, int64_t min, int64_t max);
PatternPtr optional(PatternPtr part);
PatternPtr rule(int index);
/// Any text, the empty one included.
PatternPtr any_text();

/// All characters that are not in the set; surrogates are in no set.
CodeSet complement(CodeSet set);
/// Sorted, without overlaps and surrogates.
CodeSet normalized(CodeSet set);
bool contains(const CodeSet& set, char32_t c);

}  // namespace octet
