// A template's source cut into tokens: text between tags, and what is inside tags. Does all of the
// white space control: "-" and "+" at tags, and like transformers trim_blocks (the newline after a
// block tag goes) and lstrip_blocks (the spaces before one go). Not for syntax (parser.h).
// Invariant: comments and raw tags leave no tokens but text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace octet::jinja {

/// Where something starts in the source; both count from 1, columns in bytes.
struct Location {
  int line = 1;
  int column = 1;
};

enum class TokenKind : uint8_t {
  kData,        // text of the template
  kPrintBegin,  // {{
  kPrintEnd,    // }}
  kBlockBegin,  // {%
  kBlockEnd,    // %}
  kName,
  kString,  // escapes already resolved
  kInteger,
  kReal,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text = {};
  Location location = {};
};

/// Throws Error(kMalformed) with line and column.
std::vector<Token> tokenize(std::string_view source);

/// Throws Error of `kind` whose message begins with the place.
[[noreturn]] void fail_malformed(Location location, const std::string& message);

}  // namespace octet::jinja
