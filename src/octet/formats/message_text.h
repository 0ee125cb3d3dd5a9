// How untrusted text from a file is shown in messages: quoted, escaped, shortened. Not for text
// that users read as output. Invariant: the result is printable ASCII, whatever the bytes were.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace octet {

/// 'text' with bytes outside printable ASCII as \xHH, cut after 80 bytes with "...".
std::string shown(std::string_view text);

/// "'a', 'b', 'c' and 4 more": the first `limit` of the names.
std::string shown_list(std::span<const std::string> names, size_t limit);

}  // namespace octet
