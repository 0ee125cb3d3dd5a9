// Cutting and joining texts, shared by methods and filters. Not for values (callable.h, filters.h).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "octet/jinja/interpreter.h"
#include "octet/jinja/text.h"

namespace octet::jinja {

/// Pieces between separators, at most `most` cuts from the left (negative: all). Throws
/// Error(kInvalidArgument) for an empty separator.
std::vector<Text> split_at(const Text& text, std::string_view separator, int64_t most);
std::vector<Text> split_at_from_right(const Text& text, std::string_view separator, int64_t most);
/// Pieces between runs of white space, none of them empty.
std::vector<Text> split_at_space(const Text& text, int64_t most);
std::vector<Text> lines_of(const Text& text, bool keep_ends);

/// Every `old` replaced, at most `most` from the left (negative: all).
Text replaced(
    Interpreter& interpreter, const Text& text, const Text& old, const Text& with, int64_t most
);
Text joined_texts(Interpreter& interpreter, const Values& items, const Text& separator);
Value text_list(Interpreter& interpreter, std::vector<Text> texts);

}  // namespace octet::jinja
