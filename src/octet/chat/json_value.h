// JSON as values of the template language, and JSON text to JSON with limits. All strings are the
// caller's. Not for writing JSON.
#pragma once

#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "octet/jinja/value.h"

namespace octet {

/// Throws Error(kInvalidArgument) for numbers beyond 64 bits, Error(kResourceExhausted) when nested
/// more than jinja::kMaxValueDepth deep.
jinja::Value caller_value(const nlohmann::ordered_json& json);

}  // namespace octet
