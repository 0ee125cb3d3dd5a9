// How values are spelled: as JSON, or as arguments in the model's tool calls. A schema says what
// may come, this says how it is written. Not for schemas (json_schema.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "octet/grammar/pattern.h"

namespace octet {

class ValueSyntax {
 public:
  virtual ~ValueSyntax() = default;

  /// One character of a string, of those in the set, in all its spellings.
  virtual PatternPtr string_characters(const CodeSet& set) const = 0;
  virtual PatternPtr constant_string(const std::string& text) const = 0;
  /// A string with that inside.
  virtual PatternPtr string(PatternPtr content) const = 0;
  /// The key of a member, and what stands between it and the value.
  virtual PatternPtr key(std::string_view name) const = 0;
  /// Any key that is none of these.
  virtual PatternPtr other_key(const std::vector<std::string>& names) const = 0;
  /// Exactly this value, strings in their plainest spelling.
  PatternPtr constant(const nlohmann::ordered_json& value) const;

  /// An opening bracket and the space behind it, a comma and the space behind it, ...
  virtual PatternPtr open(std::string_view bracket) const = 0;
  virtual PatternPtr close(std::string_view bracket) const = 0;
  virtual PatternPtr comma() const = 0;
  /// Members of objects stand in the order of a schema, or sorted by name.
  virtual bool sorts_members() const = 0;
};

/// JSON with no white space, or a space behind ":" and ",", or lines indented by spaces.
std::unique_ptr<const ValueSyntax> json_syntax();
/// The value syntax of Gemma 4's tool calls; strings stand between tokens `quote`. Members are
/// sorted, as the model has seen them.
std::unique_ptr<const ValueSyntax> call_syntax(TokenId quote);

/// Any of the strings is excluded: all texts over `set` that are none of `names`.
PatternPtr any_but(const std::vector<std::string>& names, const CodeSet& set);

/// -?(0|[1-9][0-9]*) with so many digits that it is exact everywhere.
PatternPtr any_integer();
PatternPtr any_number();
/// Integers from `low` to `high`, as far as they have at most 16 digits; none when low > high.
PatternPtr integer_range(int64_t low, int64_t high);

}  // namespace octet
