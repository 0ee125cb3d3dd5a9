// Random JSON Schemas, random instances of them, and a naive validator: what masks are held
// against.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <regex>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace octet::test {

using SchemaJson = nlohmann::ordered_json;

inline int below(std::mt19937_64& random, int n) {
  return static_cast<int>(random() % static_cast<uint64_t>(n));
}

inline SchemaJson random_scalar_schema(std::mt19937_64& random) {
  switch (below(random, 11)) {
    case 0:
      return {{"type", "integer"}};
    case 1: {
      const int low = below(random, 400) - 200;
      return {{"type", "integer"}, {"minimum", low}, {"maximum", low + below(random, 300)}};
    }
    case 2:
      return {{"type", "number"}};
    case 3: {
      const int low = below(random, 20) - 10;
      return {
          {"type", "number"}, {"exclusiveMinimum", low}, {"maximum", low + 1 + below(random, 9)}};
    }
    case 4:
      return {{"type", "boolean"}};
    case 5:
      return {{"type", "string"}};
    case 6: {
      const int low = below(random, 4);
      return {{"type", "string"}, {"minLength", low}, {"maxLength", low + below(random, 5)}};
    }
    case 7:
      return {{"type", "string"}, {"pattern", "^[a-c]{1,3}(-[0-9]+)?$"}};
    case 8:
      return {{"enum", {"red", "green", "say \"hi\"", 1, nullptr, {1, "x"}}}};
    case 9:
      return {{"const", {{"a", 1}, {"b", {true}}}}};
    default:
      return {{"type", {"integer", "null"}}};
  }
}

inline SchemaJson random_schema(std::mt19937_64& random, int depth) {
  if (depth == 0) {
    return random_scalar_schema(random);
  }
  switch (below(random, 6)) {
    case 0:
      return random_scalar_schema(random);
    case 1: {
      SchemaJson out = {{"type", "array"}, {"items", random_schema(random, depth - 1)}};
      if (below(random, 2) == 0) {
        out["minItems"] = below(random, 3);
        out["maxItems"] = 2 + below(random, 3);
      }
      return out;
    }
    case 2:
      return {
          {"type", "array"},
          {"prefixItems", {random_schema(random, depth - 1), random_schema(random, 0)}},
          {"items", false},
          {"minItems", below(random, 3)}};
    case 3:
      return {{"anyOf", {random_schema(random, depth - 1), random_schema(random, depth - 1)}}};
    default: {
      SchemaJson out = {
          {"type", "object"},
          {"properties", SchemaJson::object()},
          {"required", SchemaJson::array()}};
      const char* names[] = {"name", "size", "na", "a \"b\"", "x", "Y"};
      for (const char* name : names) {
        if (below(random, 2) == 0) {
          out["properties"][name] = random_schema(random, depth - 1);
          if (below(random, 2) == 0) {
            out["required"].push_back(name);
          }
        }
      }
      out["additionalProperties"] = false;
      if (below(random, 3) == 0) {
        out["additionalProperties"] = random_schema(random, 0);
      }
      return out;
    }
  }
}

inline std::string random_string(std::mt19937_64& random, int length) {
  const char* characters[] = {
      "a", "b", " ", "\"", "\\", "\n", "\xC3\xA9", "\xF0\x9F\xA6\x9C", "{", "0", "/", "\x01"};
  std::string out;
  for (int i = 0; i < length; ++i) {
    out += characters[below(random, 12)];
  }
  return out;
}

inline SchemaJson random_instance(const SchemaJson& schema, std::mt19937_64& random);

inline SchemaJson random_object(const SchemaJson& schema, std::mt19937_64& random) {
  SchemaJson out = SchemaJson::object();
  const SchemaJson& required = schema["required"];
  for (const auto& [name, property] : schema["properties"].items()) {
    const bool needed = std::find(required.begin(), required.end(), name) != required.end();
    if (needed || below(random, 2) == 0) {
      out[name] = random_instance(property, random);
    }
  }
  if (schema["additionalProperties"].is_object()) {
    for (const char* name : {"nam", "names", "zz", "", "sized"}) {
      if (below(random, 3) == 0) {
        out[name] = random_instance(schema["additionalProperties"], random);
      }
    }
  }
  return out;
}

inline SchemaJson random_array(const SchemaJson& schema, std::mt19937_64& random) {
  SchemaJson out = SchemaJson::array();
  const SchemaJson prefix = schema.value("prefixItems", SchemaJson::array());
  const int min = schema.value("minItems", 0);
  const int max =
      prefix.empty() ? schema.value("maxItems", min + 3) : static_cast<int>(prefix.size());
  const int count = min + below(random, std::max(1, max - min + 1));
  for (int i = 0; i < std::min(count, max); ++i) {
    out.push_back(
        random_instance(prefix.empty() ? schema["items"] : prefix[static_cast<size_t>(i)], random)
    );
  }
  return out;
}

inline SchemaJson random_number(const SchemaJson& schema, std::mt19937_64& random, bool integer) {
  if (integer) {
    const int low = schema.value("minimum", -100'000);
    return low + below(random, schema.value("maximum", 100'000) - low + 1);
  }
  const double low = schema.value("exclusiveMinimum", -1000.0);
  const double high = schema.value("maximum", 1000.0);
  const double value = low + (high - low) * (1 + below(random, 1000)) / 1000.0;
  return std::round(value * 1000) / 1000;
}

inline SchemaJson random_instance(const SchemaJson& schema, std::mt19937_64& random) {
  if (schema.contains("const")) {
    return schema["const"];
  }
  if (schema.contains("enum")) {
    return schema["enum"][random() % schema["enum"].size()];
  }
  if (schema.contains("anyOf")) {
    return random_instance(schema["anyOf"][random() % schema["anyOf"].size()], random);
  }
  const SchemaJson type =
      schema["type"].is_array() ? schema["type"][random() % schema["type"].size()] : schema["type"];
  if (type == "object") {
    return random_object(schema, random);
  }
  if (type == "array") {
    return random_array(schema, random);
  }
  if (type == "string") {
    if (schema.contains("pattern")) {
      return std::string(static_cast<size_t>(1 + below(random, 3)), 'b') +
             (below(random, 2) == 0 ? "" : fmt::format("-{}", below(random, 500)));
    }
    const int min = schema.value("minLength", 0);
    return random_string(random, min + below(random, schema.value("maxLength", min + 8) - min + 1));
  }
  if (type == "boolean") {
    return below(random, 2) == 0;
  }
  return type == "null" ? SchemaJson(nullptr) : random_number(schema, random, type == "integer");
}

/// One of the ways in which octet lets a model write JSON.
inline std::string instance_text(const SchemaJson& value, std::mt19937_64& random) {
  const int style = below(random, 3);
  return value.dump(style == 0 ? -1 : 2);
}

/// Why the value is no instance; empty when it is one.
inline std::string violation(const SchemaJson& schema, const SchemaJson& value);

inline std::string object_violation(const SchemaJson& schema, const SchemaJson& value) {
  for (const SchemaJson& name : schema["required"]) {
    if (!value.contains(name.get<std::string>())) {
      return "a member is missing";
    }
  }
  for (const auto& [name, item] : value.items()) {
    const bool known = schema["properties"].contains(name);
    const SchemaJson& other = schema["additionalProperties"];
    if (!known && other == false) {
      return "an additional member";
    }
    const std::string inside = violation(known ? schema["properties"][name] : other, item);
    if (!inside.empty()) {
      return name + ": " + inside;
    }
  }
  return "";
}

inline std::string array_violation(const SchemaJson& schema, const SchemaJson& value) {
  const SchemaJson prefix = schema.value("prefixItems", SchemaJson::array());
  if (value.size() < schema.value("minItems", 0U) ||
      value.size() > schema.value("maxItems", 1'000'000U)) {
    return "the number of items";
  }
  for (size_t i = 0; i < value.size(); ++i) {
    if (i >= prefix.size() && schema["items"] == false) {
      return "too many items";
    }
    const std::string inside = violation(i < prefix.size() ? prefix[i] : schema["items"], value[i]);
    if (!inside.empty()) {
      return inside;
    }
  }
  return "";
}

inline std::string string_violation(const SchemaJson& schema, const std::string& text) {
  const auto length =
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
  if (length < schema.value("minLength", 0) || length > schema.value("maxLength", 1'000'000)) {
    return "the length";
  }
  if (schema.contains("pattern") &&
      !std::regex_search(text, std::regex(schema["pattern"].get<std::string>()))) {
    return "the pattern";
  }
  return "";
}

inline bool is_of_type(const SchemaJson& value, const std::string& type) {
  return type == "object"    ? value.is_object()
         : type == "array"   ? value.is_array()
         : type == "string"  ? value.is_string()
         : type == "boolean" ? value.is_boolean()
         : type == "null"    ? value.is_null()
         : type == "integer" ? value.is_number_integer()
                             : value.is_number();
}

inline std::string violation(const SchemaJson& schema, const SchemaJson& value) {
  if (schema.contains("const")) {
    return value == schema["const"] ? "" : "not the constant";
  }
  if (schema.contains("enum")) {
    return std::find(schema["enum"].begin(), schema["enum"].end(), value) != schema["enum"].end()
               ? ""
               : "not listed";
  }
  if (schema.contains("anyOf")) {
    const bool any =
        std::any_of(schema["anyOf"].begin(), schema["anyOf"].end(), [&](const SchemaJson& one) {
          return violation(one, value).empty();
        });
    return any ? "" : "none of anyOf";
  }
  const SchemaJson types =
      schema["type"].is_array() ? schema["type"] : SchemaJson::array({schema["type"]});
  const bool typed = std::any_of(types.begin(), types.end(), [&](const SchemaJson& type) {
    return is_of_type(value, type.get<std::string>());
  });
  if (!typed) {
    return "the type";
  }
  if (value.is_object()) {
    return object_violation(schema, value);
  }
  if (value.is_array()) {
    return array_violation(schema, value);
  }
  if (value.is_string()) {
    return string_violation(schema, value.get<std::string>());
  }
  if (value.is_number()) {
    const double number = value.get<double>();
    const bool inside = number >= schema.value("minimum", -1e300) &&
                        number <= schema.value("maximum", 1e300) &&
                        number > schema.value("exclusiveMinimum", -1e300);
    return inside ? "" : "the range";
  }
  return "";
}

}  // namespace octet::test
