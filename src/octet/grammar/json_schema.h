// JSON Schema to patterns. What cannot be held exactly is refused by name, never ignored; only
// annotations are passed over. Members of an object come in the order of "properties"; members that
// the schema does not name come behind them, and only where additionalProperties says so.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "octet/grammar/grammar.h"
#include "octet/grammar/pattern.h"
#include "octet/grammar/value_syntax.h"

namespace octet {

/// Adds what the schema needs to `rules`; returns the pattern of a value. `place` names the schema
/// in messages. Throws Error: kMalformed, kUnsupported naming the keyword and its place,
/// kResourceExhausted naming the limit.
PatternPtr schema_pattern(
    const nlohmann::ordered_json& schema,
    const std::string& place,
    const ValueSyntax& syntax,
    PatternRules& rules,
    const GrammarLimits& limits
);

/// Any JSON object.
PatternPtr any_object_pattern(const ValueSyntax& syntax, PatternRules& rules);

}  // namespace octet
