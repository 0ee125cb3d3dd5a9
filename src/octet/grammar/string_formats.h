// The string formats of JSON Schema that octet holds, as regular expressions over the whole string.
// Stricter than the standard where it leaves room (no leap seconds, no 29 February).
#pragma once

#include <string_view>

namespace octet {

/// Empty for a format that is not supported.
std::string_view string_format(std::string_view name);

}  // namespace octet
