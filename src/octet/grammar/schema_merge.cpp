#include "octet/grammar/schema_merge.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/base/error.h"
#include "octet/base/utf8.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 14> kAnnotations = {
    "title",
    "description",
    "default",
    "examples",
    "example",
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "definitions",
    "deprecated",
    "readOnly",
    "writeOnly",
    "strict"};

constexpr std::array<std::string_view, 27> kKeywords = {
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "anyOf",
    "oneOf",
    "allOf",
    "$ref",
    "nullable",
    "multipleOf",
    "uniqueItems",
    "minProperties",
    "maxProperties"};

bool is_one_of(std::string_view name, auto first, auto last) {
  return std::find(first, last, name) != last;
}

bool is_annotation(std::string_view name) {
  return name.starts_with("x-") || is_one_of(name, kAnnotations.begin(), kAnnotations.end());
}

std::string type_of(const Json& value) {
  return value.is_object()           ? "object"
         : value.is_array()          ? "array"
         : value.is_string()         ? "string"
         : value.is_boolean()        ? "boolean"
         : value.is_null()           ? "null"
         : value.is_number_integer() ? "integer"
                                     : "number";
}

Json types_of(const Json& schema) {
  if (schema.contains("type")) {
    return schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
  }
  const std::string_view implied = implied_type(schema);
  return implied.empty() ? Json::array() : Json::array({implied});
}

bool overlap(const Json& a, const Json& b) {
  const auto is = [](const Json& type, const char* name) { return type == name; };
  return a == b || (is(a, "integer") && is(b, "number")) || (is(a, "number") && is(b, "integer"));
}

Json constants_of(const Json& schema) {
  return schema.contains("const")                               ? Json::array({schema["const"]})
         : schema.contains("enum") && schema["enum"].is_array() ? schema["enum"]
                                                                : Json::array();
}

Json merged_types(const Json& a, const Json& b, const std::string& place) {
  Json out = Json::array();
  for (const Json& x : a.is_array() ? a : Json::array({a})) {
    for (const Json& y : b.is_array() ? b : Json::array({b})) {
      if (overlap(x, y)) {
        out.push_back(x == "integer" ? x : y);
      }
    }
  }
  if (out.empty()) {
    throw Error(ErrorKind::kMalformed, fmt::format("{}: no value has both types", place));
  }
  return out;
}

void merge_properties(Json& into, const Json& from, const std::string& place) {
  for (const auto& [name, property] : from.items()) {
    if (into.contains(name)) {
      into[name] =
          merged_schemas(into[name], property, fmt::format("{}/properties/{}", place, name));
    } else {
      into[name] = property;
    }
  }
}

}  // namespace

void refuse_unknown_keywords(const Json& schema, const std::string& place) {
  for (const auto& [name, value] : schema.items()) {
    if (!is_annotation(name) && !is_one_of(name, kKeywords.begin(), kKeywords.end())) {
      throw Error(
          ErrorKind::kUnsupported,
          fmt::format(
              "{}: the schema keyword '{}' is not supported", place, replace_invalid_utf8(name)
          )
      );
    }
  }
  const auto refuse = [&](const char* name, const Json& harmless) {
    if (schema.contains(name) && schema[name] != harmless) {
      throw Error(
          ErrorKind::kUnsupported,
          fmt::format("{}: the schema keyword '{}' is not supported", place, name)
      );
    }
  };
  refuse("uniqueItems", false);
  refuse("minProperties", 0);
  refuse("maxProperties", nullptr);
}

void refuse_others(
    const Json& schema, const std::string& place, std::initializer_list<std::string_view> allowed
) {
  for (const auto& [name, value] : schema.items()) {
    if (!is_annotation(name) && !is_one_of(name, allowed.begin(), allowed.end())) {
      throw Error(
          ErrorKind::kUnsupported,
          fmt::format(
              "{}: '{}' beside enum or const is not supported", place, replace_invalid_utf8(name)
          )
      );
    }
  }
}

bool has_constraints(const Json& schema) {
  if (!schema.is_object()) {
    return true;
  }
  return std::any_of(schema.items().begin(), schema.items().end(), [](const auto& item) {
    return !is_annotation(item.key());
  });
}

Json without(const Json& schema, std::initializer_list<const char*> names) {
  Json out = schema;
  for (const char* name : names) {
    out.erase(name);
  }
  return out;
}

bool has_type(const Json& value, const Json& schema) {
  if (!schema.contains("type")) {
    return true;
  }
  const Json types = types_of(schema);
  const std::string type = type_of(value);
  const bool whole = value.is_number() && std::floor(value.get<double>()) == value.get<double>();
  return std::any_of(types.begin(), types.end(), [&](const Json& one) {
    return one == type || (one == "number" && value.is_number()) || (one == "integer" && whole);
  });
}

std::string_view implied_type(const Json& schema) {
  constexpr std::pair<const char*, std::string_view> kImplied[] = {
      {"properties", "object"},
      {"required", "object"},
      {"additionalProperties", "object"},
      {"items", "array"},
      {"prefixItems", "array"},
      {"minItems", "array"},
      {"maxItems", "array"},
      {"minLength", "string"},
      {"maxLength", "string"},
      {"pattern", "string"},
      {"format", "string"},
      {"minimum", "number"},
      {"maximum", "number"},
      {"exclusiveMinimum", "number"},
      {"exclusiveMaximum", "number"},
      {"multipleOf", "number"}};
  for (const auto& [keyword, type] : kImplied) {
    if (schema.contains(keyword)) {
      return type;
    }
  }
  return {};
}

Json merged_schemas(const Json& a, const Json& b, const std::string& place) {
  if (!a.is_object() || !b.is_object()) {
    throw Error(
        ErrorKind::kUnsupported, fmt::format("{}: boolean schemas cannot be combined", place)
    );
  }
  const bool both_have_members = a.contains("properties") && b.contains("properties");
  if (both_have_members &&
      (a.contains("additionalProperties") || b.contains("additionalProperties")) && a != b) {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format(
            "{}: combining schemas with properties and additionalProperties is not supported", place
        )
    );
  }
  Json out = a;
  for (const auto& [name, value] : b.items()) {
    if (is_annotation(name) || !out.contains(name) || out[name] == value) {
      out[name] = value;
    } else if (name == "type") {
      out[name] = merged_types(out[name], value, place);
    } else if (name == "properties") {
      merge_properties(out[name], value, place);
    } else if (name == "required") {
      for (const Json& one : value) {
        if (std::find(out[name].begin(), out[name].end(), one) == out[name].end()) {
          out[name].push_back(one);
        }
      }
    } else {
      throw Error(
          ErrorKind::kUnsupported,
          fmt::format("{}: two schemas with different '{}' cannot be combined", place, name)
      );
    }
  }
  return out;
}

bool disjoint_schemas(const Json& a, const Json& b) {
  if (!a.is_object() || !b.is_object()) {
    return a == false || b == false;
  }
  const Json constants_a = constants_of(a);
  const Json constants_b = constants_of(b);
  if (!constants_a.empty() && !constants_b.empty()) {
    return std::none_of(constants_a.begin(), constants_a.end(), [&](const Json& value) {
      return std::find(constants_b.begin(), constants_b.end(), value) != constants_b.end();
    });
  }
  const Json types_a = types_of(a);
  const Json types_b = types_of(b);
  const bool types_overlap =
      types_a.empty() || types_b.empty() ||
      std::any_of(types_a.begin(), types_a.end(), [&](const Json& x) {
        return std::any_of(types_b.begin(), types_b.end(), [&](const Json& y) {
          return overlap(x, y);
        });
      });
  if (!types_overlap) {
    return true;
  }
  // Objects that a required member with constants tells apart.
  const Json properties_a = a.value("properties", Json::object());
  const Json properties_b = b.value("properties", Json::object());
  const Json required_a = a.value("required", Json::array());
  const Json required_b = b.value("required", Json::array());
  const auto requires_member = [](const Json& required, const std::string& name) {
    return std::find(required.begin(), required.end(), name) != required.end();
  };
  return std::any_of(
      properties_a.items().begin(),
      properties_a.items().end(),
      [&](const auto& item) {
        return properties_b.contains(item.key()) && requires_member(required_a, item.key()) &&
               requires_member(required_b, item.key()) && !constants_of(item.value()).empty() &&
               disjoint_schemas(item.value(), properties_b[item.key()]);
      }
  );
}

}  // namespace octet
