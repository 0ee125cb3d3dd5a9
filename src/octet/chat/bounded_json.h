// JSON of callers, looked through before it is read into memory: how deep, how many values, how
// many members. So that a text of a few megabytes cannot cost minutes or gigabytes. Not for files
// of models (formats/json_value.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace octet {

struct JsonBounds {
  int max_depth = 64;
  int64_t max_values = 1'000'000;  // objects and arrays count too
  int64_t max_members = 4096;      // of one object
  /// Each member of an object is compared with those before it: of all objects together.
  int64_t max_comparisons = int64_t{1} << 25;
};

struct JsonFault {
  bool syntax = false;  // no JSON at all
  std::string what;     // goes on where a sentence names the text: "nests deeper than 64 levels"
};

/// Nothing: the text is JSON within the bounds, and reading it takes time in its length.
std::optional<JsonFault> json_fault(std::string_view text, const JsonBounds& bounds = {});

}  // namespace octet
