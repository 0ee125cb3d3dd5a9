// Tools as clients and files describe them, in OpenAI's form, to what a grammar of calls wants of
// them. Whether and which tools may be called is their caller's business. Invariant: only a tool
// that says "strict": true is held to its schema.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "octet/grammar/grammar.h"

namespace octet {

/// `tool` is {"type": "function", "function": {"name", "parameters", "strict", ...}} and has been
/// found to have a name. The signature points into it.
ToolSignature tool_signature(const nlohmann::ordered_json& tool);

/// Its arguments must follow its schema.
bool is_strict_tool(const nlohmann::ordered_json& tool);

}  // namespace octet
