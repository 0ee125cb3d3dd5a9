// Regular expressions to patterns: the common core of ECMAScript's and Python's. Not for matching.
// Groups capture nothing, lazy and greedy repetition are the same (all matches are wanted). Refused
// by name: look-around, back references, word borders, Unicode properties, anchors that are not at
// the ends.
#pragma once

#include <functional>
#include <string_view>

#include "octet/grammar/grammar.h"
#include "octet/grammar/pattern.h"

namespace octet {

/// How a set of characters is written in the text: itself, or for example escaped inside JSON.
using WriteCharacters = std::function<PatternPtr(const CodeSet&)>;

enum class RegexMatch {
  kWhole,   // the expression describes the whole text
  kSearch,  // it may be found anywhere unless anchored, as JSON Schema has it
};

/// Throws Error: kMalformed with the place, kUnsupported naming the construct, kResourceExhausted.
PatternPtr regex_pattern(
    std::string_view expression,
    RegexMatch match,
    const WriteCharacters& write,
    const GrammarLimits& limits
);

}  // namespace octet
