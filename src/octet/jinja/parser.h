// Tokens to a syntax tree. Not for running it. Limit: brackets, blocks and operators nested more
// than kMaxSyntaxDepth deep are refused, so that walking a tree never exhausts the stack.
#pragma once

#include <string_view>

#include "octet/jinja/syntax.h"

namespace octet::jinja {

inline constexpr int kMaxSyntaxDepth = 150;

/// Throws Error: kMalformed with line and column, kUnsupported naming the statement.
Program parse(std::string_view source);

}  // namespace octet::jinja
