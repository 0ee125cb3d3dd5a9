// Questions about schemas as JSON: which keywords they have, what two of them have in common. Not
// for patterns (json_schema.h).
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace octet {

/// Throws Error(kUnsupported) naming a keyword that cannot be held or is not known.
void refuse_unknown_keywords(const nlohmann::ordered_json& schema, const std::string& place);
/// Throws Error(kUnsupported) when there are constraints beside those.
void refuse_others(
    const nlohmann::ordered_json& schema,
    const std::string& place,
    std::initializer_list<std::string_view> allowed
);

/// Something beside annotations.
bool has_constraints(const nlohmann::ordered_json& schema);
nlohmann::ordered_json without(
    const nlohmann::ordered_json& schema, std::initializer_list<const char*> names
);
/// The value has one of the types that the schema names, or it names none.
bool has_type(const nlohmann::ordered_json& value, const nlohmann::ordered_json& schema);
/// The type that the keywords of a schema without "type" are about; empty when none.
std::string_view implied_type(const nlohmann::ordered_json& schema);

/// What both schemas allow. Throws Error(kUnsupported) naming a keyword that cannot be merged.
nlohmann::ordered_json merged_schemas(
    const nlohmann::ordered_json& a, const nlohmann::ordered_json& b, const std::string& place
);

/// No value satisfies both, as far as types, constants and required members with constants tell.
bool disjoint_schemas(const nlohmann::ordered_json& a, const nlohmann::ordered_json& b);

}  // namespace octet
