// Grammars in text form (GBNF): rules "name ::= expression" with "literals", [sets], groups, |, *,
// +,
// ?, {n,m}, "." and # comments. Not for control tokens: no grammar of a caller can name them.
#pragma once

#include <string_view>

#include "octet/grammar/grammar.h"
#include "octet/grammar/pattern.h"

namespace octet {

/// Adds the rules; returns the index of "root". Throws Error: kMalformed with the line,
/// kResourceExhausted naming the limit.
int add_ebnf_rules(PatternRules& rules, std::string_view source, const GrammarLimits& limits);

}  // namespace octet
