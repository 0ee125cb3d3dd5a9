#include "octet/grammar/json_schema.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/base/error.h"
#include "octet/base/utf8.h"
#include "octet/grammar/regex.h"
#include "octet/grammar/schema_merge.h"
#include "octet/grammar/string_formats.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

const CodeSet kAllCharacters = {{0, kLastCodePoint}};

constexpr std::array<std::string_view, 7> kTypes = {
    "object", "array", "string", "number", "integer", "boolean", "null"};

class SchemaCompiler {
 public:
  SchemaCompiler(
      const Json& root, const ValueSyntax& syntax, PatternRules& rules, const GrammarLimits& limits
  )
      : root_(root), syntax_(syntax), rules_(rules), limits_(limits) {}

  PatternPtr value(const Json& schema, const std::string& place, int depth) {
    if (depth > limits_.max_nesting) {
      throw Error(
          ErrorKind::kResourceExhausted,
          fmt::format(
              "{}: the schema is nested more than {} levels deep", place, limits_.max_nesting
          )
      );
    }
    if (schema.is_boolean()) {
      return schema.get<bool>() ? any_value() : choice({});
    }
    if (!schema.is_object()) {
      throw Error(
          ErrorKind::kMalformed, fmt::format("{}: a schema must be an object or a boolean", place)
      );
    }
    refuse_unknown_keywords(schema, place);
    if (const auto nullable = schema.find("nullable");
        nullable != schema.end() && *nullable == true) {
      Json plain = schema;
      plain.erase("nullable");
      return choice({value(plain, place, depth + 1), syntax_.constant(nullptr)});
    }
    return combined(schema, place, depth);
  }

  PatternPtr any_value() {
    if (any_rule_ < 0) {
      any_rule_ = rules_.add(nullptr, "any value");
      const PatternPtr member = sequence({syntax_.other_key({}), rule(any_rule_)});
      rules_.rules[static_cast<size_t>(any_rule_)] = choice(
          {any_string(),
           any_number(),
           literal("true"),
           literal("false"),
           literal("null"),
           list("[", rule(any_rule_), 0, kUnbounded),
           list("{", member, 0, kUnbounded)}
      );
    }
    return rule(any_rule_);
  }

  PatternPtr any_object() {
    return list("{", sequence({syntax_.other_key({}), any_value()}), 0, kUnbounded);
  }

 private:
  PatternPtr any_string() const {
    return syntax_.string(repeat(syntax_.string_characters(kAllCharacters), 0, kUnbounded));
  }

  /// Items between brackets with commas.
  PatternPtr list(std::string_view bracket, const PatternPtr& item, int64_t min, int64_t max)
      const {
    const std::string_view closing = bracket == "[" ? "]" : "}";
    if (max == 0) {
      return sequence({syntax_.open(bracket), syntax_.close(closing)});
    }
    const PatternPtr more = repeat(
        sequence({syntax_.comma(), item}),
        std::max<int64_t>(min - 1, 0),
        max == kUnbounded ? kUnbounded : max - 1
    );
    PatternPtr items = sequence({item, more});
    if (min == 0) {
      items = optional(std::move(items));
    }
    return sequence({syntax_.open(bracket), std::move(items), syntax_.close(closing)});
  }

  /// $ref, anyOf, oneOf, allOf, enum and const, else by type.
  PatternPtr combined(const Json& schema, const std::string& place, int depth) {
    if (schema.contains("$ref")) {
      const Json rest = without(schema, {"$ref", "$defs", "definitions"});
      if (has_constraints(rest)) {
        return value(
            merged_schemas(resolved(schema["$ref"], place), rest, place), place, depth + 1
        );
      }
      return reference(schema["$ref"], place, depth);
    }
    for (const char* name : {"allOf", "anyOf", "oneOf"}) {
      if (!schema.contains(name)) {
        continue;
      }
      const Json& branches = schema[name];
      if (!branches.is_array() || branches.empty()) {
        throw Error(
            ErrorKind::kMalformed, fmt::format("{}/{} must be an array of schemas", place, name)
        );
      }
      const Json rest = without(schema, {name, "$defs", "definitions"});
      if (std::string_view(name) == "allOf") {
        Json all = rest;
        for (const Json& branch : branches) {
          all = merged_schemas(all, dereferenced(branch, place), place);
        }
        return value(all, place, depth + 1);
      }
      if (std::string_view(name) == "oneOf") {
        require_disjoint(branches, place);
      }
      std::vector<PatternPtr> options;
      for (size_t i = 0; i < branches.size(); ++i) {
        const std::string branch_place = fmt::format("{}/{}/{}", place, name, i);
        const Json branch =
            has_constraints(rest)
                ? merged_schemas(rest, dereferenced(branches[i], place), branch_place)
                : branches[i];
        options.push_back(value(branch, branch_place, depth + 1));
      }
      return choice(std::move(options));
    }
    if (schema.contains("const") || schema.contains("enum")) {
      return constants(schema, place);
    }
    return typed(schema, place, depth);
  }

  void require_disjoint(const Json& branches, const std::string& place) const {
    for (size_t i = 0; i < branches.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (!disjoint_schemas(dereferenced(branches[j], place), dereferenced(branches[i], place))) {
          throw Error(
              ErrorKind::kUnsupported,
              fmt::format(
                  "{}/oneOf: the alternatives {} and {} are not told apart by type or constants; "
                  "use anyOf",
                  place,
                  j,
                  i
              )
          );
        }
      }
    }
  }

  const Json& dereferenced(const Json& schema, const std::string& place) const {
    const bool plain = schema.is_object() && schema.contains("$ref") &&
                       !has_constraints(without(schema, {"$ref"}));
    return plain ? resolved(schema["$ref"], place) : schema;
  }

  const Json& resolved(const Json& reference, const std::string& place) const {
    if (reference.is_string()) {
      const auto& text = reference.get_ref<const std::string&>();
      if (text == "#") {
        return root_;
      }
      if (text.starts_with("#/")) {
        try {
          const Json::json_pointer pointer(text.substr(1));
          if (root_.contains(pointer)) {
            return root_.at(pointer);
          }
        } catch (const Json::exception&) {  // no pointer: said below
        }
      }
    }
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format(
            "{}/$ref must name a place in this schema, such as #/$defs/name, that exists", place
        )
    );
  }

  PatternPtr reference(const Json& name, const std::string& place, int depth) {
    const Json& target = resolved(name, place);
    const auto& text = name.get_ref<const std::string&>();
    const auto known = references_.find(text);
    if (known != references_.end()) {
      return rule(known->second);
    }
    const int index = rules_.add(nullptr, text);
    references_.emplace(text, index);
    PatternPtr pattern = value(target, text, depth + 1);
    rules_.rules[static_cast<size_t>(index)] = std::move(pattern);
    return rule(index);
  }

  PatternPtr constants(const Json& schema, const std::string& place) {
    refuse_others(schema, place, {"const", "enum", "type"});
    std::vector<PatternPtr> options;
    const Json values = schema.contains("const") ? Json::array({schema["const"]}) : schema["enum"];
    if (!values.is_array() || values.empty()) {
      throw Error(
          ErrorKind::kMalformed, fmt::format("{}/enum must be an array with values", place)
      );
    }
    for (const Json& one : values) {
      const bool listed =
          !schema.contains("enum") ||
          std::find(schema["enum"].begin(), schema["enum"].end(), one) != schema["enum"].end();
      if (listed && has_type(one, schema)) {
        options.push_back(syntax_.constant(one));
      }
    }
    return choice(std::move(options));
  }

  PatternPtr typed(const Json& schema, const std::string& place, int depth) {
    const auto type = schema.find("type");
    if (type == schema.end()) {
      const std::string_view implied = implied_type(schema);
      return implied.empty() ? any_value() : of_type(implied, schema, place, depth);
    }
    if (type->is_string()) {
      return of_type(type->get_ref<const std::string&>(), schema, place, depth);
    }
    if (!type->is_array() || type->empty()) {
      throw Error(
          ErrorKind::kMalformed, fmt::format("{}/type must be a string or an array", place)
      );
    }
    std::vector<PatternPtr> options;
    for (const Json& one : *type) {
      options.push_back(
          of_type(one.is_string() ? one.get_ref<const std::string&>() : "", schema, place, depth)
      );
    }
    return choice(std::move(options));
  }

  PatternPtr of_type(
      std::string_view type, const Json& schema, const std::string& place, int depth
  ) {
    if (std::find(kTypes.begin(), kTypes.end(), type) == kTypes.end()) {
      throw Error(
          ErrorKind::kMalformed,
          fmt::format("{}/type names no type of JSON: '{}'", place, replace_invalid_utf8(type))
      );
    }
    return type == "object"                        ? object(schema, place, depth)
           : type == "array"                       ? array(schema, place, depth)
           : type == "string"                      ? string(schema, place)
           : type == "number" || type == "integer" ? number(schema, place, type == "integer")
           : type == "boolean"                     ? choice({literal("true"), literal("false")})
                                                   : literal("null");
  }

  // Objects.

  struct Member {
    PatternPtr pattern;
    bool required = false;
  };

  PatternPtr object(const Json& schema, const std::string& place, int depth) {
    const Json properties = schema.value("properties", Json::object());
    const Json required = schema.value("required", Json::array());
    if (!properties.is_object() || !required.is_array()) {
      throw Error(
          ErrorKind::kMalformed,
          fmt::format("{}: properties must be an object, required an array", place)
      );
    }
    const auto additional = schema.find("additionalProperties");
    const bool given = additional != schema.end();
    const bool closed = given ? *additional == false : !properties.empty();
    std::vector<std::pair<std::string, const Json*>> named;
    for (const auto& [name, property] : properties.items()) {
      named.emplace_back(name, &property);
    }
    for (const Json& name : required) {
      if (!name.is_string()) {
        throw Error(ErrorKind::kMalformed, fmt::format("{}/required must hold strings", place));
      }
      if (!properties.contains(name.get<std::string>())) {
        if (given && closed) {
          throw Error(
              ErrorKind::kMalformed,
              fmt::format(
                  "{}/required names '{}', which additionalProperties forbids",
                  place,
                  name.get<std::string>()
              )
          );
        }
        named.emplace_back(
            name.get<std::string>(), given && additional->is_object() ? &*additional : nullptr
        );
      }
    }
    if (syntax_.sorts_members()) {
      sort_by_name(named);
    }
    std::vector<Member> members;
    std::vector<std::string> names;
    for (const auto& [name, property] : named) {
      const std::string member_place = fmt::format("{}/properties/{}", place, name);
      PatternPtr member =
          property == nullptr ? any_value() : value(*property, member_place, depth + 1);
      const bool needed = std::find(required.begin(), required.end(), name) != required.end();
      members.push_back(
          {.pattern = sequence({syntax_.key(name), std::move(member)}), .required = needed}
      );
      names.push_back(name);
    }
    PatternPtr extra;
    if (!closed) {
      PatternPtr any = given && additional->is_object()
                           ? value(*additional, place + "/additionalProperties", depth + 1)
                           : any_value();
      extra = sequence({syntax_.other_key(names), std::move(any)});
    }
    return sequence({syntax_.open("{"), members_pattern(members, extra), syntax_.close("}")});
  }

  /// Names as Jinja's dictsort has them: without case.
  static void sort_by_name(std::vector<std::pair<std::string, const Json*>>& named) {
    const auto folded = [](std::string text) {
      std::transform(text.begin(), text.end(), text.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
      });
      return text;
    };
    std::stable_sort(named.begin(), named.end(), [&](const auto& a, const auto& b) {
      return folded(a.first) < folded(b.first);
    });
  }

  /// Members in order, optional ones or not, with commas between those that are there. What follows
  /// a member is a rule of its own, because each optional first member leads to it.
  PatternPtr members_pattern(const std::vector<Member>& members, const PatternPtr& extra) {
    PatternPtr rest =
        extra == nullptr ? sequence({}) : repeat(sequence({syntax_.comma(), extra}), 0, kUnbounded);
    PatternPtr first = extra == nullptr ? sequence({}) : optional(sequence({extra, rest}));
    for (size_t i = members.size(); i-- > 0;) {
      const Member& member = members[i];
      const PatternPtr after = rule(rules_.add(rest, "members"));
      const PatternPtr begin = sequence({member.pattern, after});
      first = member.required ? begin : choice({begin, first});
      const PatternPtr next = sequence({syntax_.comma(), member.pattern});
      rest = sequence({member.required ? next : optional(next), after});
    }
    return first;
  }

  // Arrays.

  PatternPtr array(const Json& schema, const std::string& place, int depth) {
    const int64_t min = count(schema, "minItems", place, 0);
    const int64_t max = count(schema, "maxItems", place, kUnbounded);
    const Json prefix = schema.value("prefixItems", Json::array());
    const auto items = schema.find("items");
    if (!prefix.is_array() || (items != schema.end() && items->is_array())) {
      throw Error(
          ErrorKind::kUnsupported,
          fmt::format("{}/items as an array is not supported; use prefixItems", place)
      );
    }
    if (max != kUnbounded && max < min) {
      throw Error(ErrorKind::kMalformed, fmt::format("{}: maxItems is below minItems", place));
    }
    const bool no_more = items != schema.end() && *items == false;
    PatternPtr item = no_more                 ? choice({})
                      : items == schema.end() ? any_value()
                                              : value(*items, place + "/items", depth + 1);
    if (prefix.empty()) {
      return list("[", item, min, no_more ? 0 : max);
    }
    const auto fixed = static_cast<int64_t>(prefix.size());
    const int64_t most = max == kUnbounded ? kUnbounded : std::max<int64_t>(max - fixed, 0);
    PatternPtr rest = repeat(
        sequence({syntax_.comma(), std::move(item)}),
        std::max<int64_t>(min - fixed, 0),
        no_more ? 0 : most
    );
    for (int64_t i = fixed; i-- > 0;) {
      const auto index = static_cast<size_t>(i);
      if (max != kUnbounded && i >= max) {
        rest = sequence({});
        continue;
      }
      PatternPtr one = value(prefix[index], fmt::format("{}/prefixItems/{}", place, i), depth + 1);
      PatternPtr with_rest = i == 0 ? sequence({std::move(one), std::move(rest)})
                                    : sequence({syntax_.comma(), std::move(one), std::move(rest)});
      rest = i >= min ? optional(std::move(with_rest)) : std::move(with_rest);
    }
    return sequence({syntax_.open("["), std::move(rest), syntax_.close("]")});
  }

  static int64_t count(
      const Json& schema, const char* name, const std::string& place, int64_t missing
  ) {
    const auto found = schema.find(name);
    if (found == schema.end()) {
      return missing;
    }
    const bool whole = found->is_number() &&
                       std::floor(found->get<double>()) == found->get<double>() &&
                       found->get<double>() >= 0 && found->get<double>() < 1e9;
    if (!whole) {
      throw Error(ErrorKind::kMalformed, fmt::format("{}/{} must be a count", place, name));
    }
    return static_cast<int64_t>(found->get<double>());
  }

  // Strings.

  PatternPtr string(const Json& schema, const std::string& place) const {
    const int64_t min = count(schema, "minLength", place, 0);
    const int64_t max = count(schema, "maxLength", place, kUnbounded);
    const bool limited = min > 0 || max != kUnbounded;
    const auto pattern = schema.find("pattern");
    const auto format = schema.find("format");
    if ((limited && (pattern != schema.end() || format != schema.end())) ||
        (pattern != schema.end() && format != schema.end())) {
      throw Error(
          ErrorKind::kUnsupported,
          fmt::format(
              "{}: pattern, format and minLength/maxLength together are not supported", place
          )
      );
    }
    const WriteCharacters write = [this](const CodeSet& set) {
      return syntax_.string_characters(set);
    };
    if (pattern != schema.end()) {
      if (!pattern->is_string()) {
        throw Error(ErrorKind::kMalformed, fmt::format("{}/pattern must be a string", place));
      }
      try {
        return syntax_.string(regex_pattern(
            pattern->get_ref<const std::string&>(), RegexMatch::kSearch, write, limits_
        ));
      } catch (Error& error) {
        error.add_context(place + "/pattern");
        throw;
      }
    }
    if (format != schema.end()) {
      const std::string_view expression = format->is_string()
                                              ? string_format(format->get_ref<const std::string&>())
                                              : std::string_view();
      if (expression.empty()) {
        throw Error(
            ErrorKind::kUnsupported,
            fmt::format("{}/format {} is not supported", place, format->dump())
        );
      }
      return syntax_.string(regex_pattern(expression, RegexMatch::kWhole, write, limits_));
    }
    if (max != kUnbounded && max < min) {
      throw Error(ErrorKind::kMalformed, fmt::format("{}: maxLength is below minLength", place));
    }
    return syntax_.string(repeat(syntax_.string_characters(kAllCharacters), min, max));
  }

  // Numbers.

  struct Bounds {
    std::optional<int64_t> low;
    std::optional<int64_t> high;
    bool low_excluded = false;
    bool high_excluded = false;
  };

  static std::optional<int64_t> bound(
      const Json& schema, const char* name, const std::string& place, bool up
  ) {
    const auto found = schema.find(name);
    if (found == schema.end()) {
      return std::nullopt;
    }
    if (!found->is_number()) {
      throw Error(ErrorKind::kUnsupported, fmt::format("{}/{} must be a number", place, name));
    }
    const double value = std::clamp(found->get<double>(), -1e16, 1e16);
    return static_cast<int64_t>(up ? std::ceil(value) : std::floor(value));
  }

  static bool is_whole(const Json& schema, const char* name) {
    const auto found = schema.find(name);
    return found == schema.end() || !found->is_number() ||
           std::floor(found->get<double>()) == found->get<double>();
  }

  static Bounds bounds(const Json& schema, const std::string& place) {
    Bounds out;
    out.low = bound(schema, "minimum", place, true);
    out.high = bound(schema, "maximum", place, false);
    // An exclusive bound between two whole numbers excludes neither of them.
    if (const auto above = bound(schema, "exclusiveMinimum", place, true);
        above && (!out.low || *above >= *out.low)) {
      out.low = above;
      out.low_excluded = is_whole(schema, "exclusiveMinimum");
    }
    if (const auto below = bound(schema, "exclusiveMaximum", place, false);
        below && (!out.high || *below <= *out.high)) {
      out.high = below;
      out.high_excluded = is_whole(schema, "exclusiveMaximum");
    }
    return out;
  }

  static PatternPtr number(const Json& schema, const std::string& place, bool integer) {
    if (const auto step = schema.find("multipleOf");
        step != schema.end() && !(integer && *step == 1)) {
      throw Error(ErrorKind::kUnsupported, fmt::format("{}/multipleOf is not supported", place));
    }
    const Bounds limits = bounds(schema, place);
    if (!limits.low && !limits.high) {
      return integer ? any_integer() : any_number();
    }
    constexpr int64_t kFar = 10'000'000'000'000'000;
    const int64_t low = limits.low.value_or(-kFar) + (limits.low_excluded ? 1 : 0);
    const int64_t high = limits.high.value_or(kFar) - (limits.high_excluded ? 1 : 0);
    if (integer) {
      return integer_range(low, high);
    }
    for (const char* name : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}) {
      if (!is_whole(schema, name)) {
        throw Error(
            ErrorKind::kUnsupported,
            fmt::format("{}/{} of a number that is no integer must be a whole number", place, name)
        );
      }
    }
    return real_range(limits, low, high);
  }

  /// Whole numbers in the range, and decimals: n.f lies between n and n + 1, -n.f between -n - 1
  /// and -n. Where a bound itself is excluded, the decimals beside it need a digit that is not 0.
  static PatternPtr real_range(const Bounds& limits, int64_t low, int64_t high) {
    const PatternPtr digit = characters({{'0', '9'}});
    const PatternPtr fraction = sequence({literal("."), repeat(digit, 1, 17)});
    const PatternPtr positive =
        sequence({literal("."), repeat(digit, 0, 15), characters({{'1', '9'}}), repeat(digit, 0, 1)}
        );
    constexpr int64_t kFar = 10'000'000'000'000'000;
    const int64_t from = limits.low.value_or(-kFar);
    const int64_t to = limits.high.value_or(kFar);
    const PatternPtr zeros = sequence({literal("."), repeat(literal("0"), 1, 17)});
    std::vector<PatternPtr> options = {integer_range(low, high)};
    // The bounds themselves, with a fraction of nothing.
    if (limits.high && !limits.high_excluded) {
      options.push_back(sequence({integer_range(to, to), zeros}));
    }
    if (limits.low && !limits.low_excluded) {
      options.push_back(sequence({integer_range(from, from), zeros}));
    }
    if (to - 1 >= std::max<int64_t>(from, 0)) {
      const int64_t begin = std::max<int64_t>(from, 0);
      if (limits.low_excluded && begin == from) {
        options.push_back(sequence({integer_range(begin, begin), positive}));
        options.push_back(sequence({integer_range(begin + 1, to - 1), fraction}));
      } else {
        options.push_back(sequence({integer_range(begin, to - 1), fraction}));
      }
    }
    if (from < 0) {
      // Magnitudes n of -n.f: -(n + 1) >= from and -n <= to.
      const int64_t begin = std::max<int64_t>(0, -to);
      const int64_t end = -from - 1;
      if (limits.high_excluded && begin == -to) {
        options.push_back(
            sequence({literal("-"), integer_range(begin, std::min(begin, end)), positive})
        );
        options.push_back(sequence({literal("-"), integer_range(begin + 1, end), fraction}));
      } else {
        options.push_back(sequence({literal("-"), integer_range(begin, end), fraction}));
      }
    }
    return choice(std::move(options));
  }

  const Json& root_;
  const ValueSyntax& syntax_;
  PatternRules& rules_;
  const GrammarLimits& limits_;
  std::map<std::string, int> references_;
  int any_rule_ = -1;
};

}  // namespace

PatternPtr schema_pattern(
    const Json& schema,
    const std::string& place,
    const ValueSyntax& syntax,
    PatternRules& rules,
    const GrammarLimits& limits
) {
  return SchemaCompiler(schema, syntax, rules, limits).value(schema, place, 0);
}

PatternPtr any_object_pattern(const ValueSyntax& syntax, PatternRules& rules) {
  return SchemaCompiler(Json::object(), syntax, rules, GrammarLimits()).any_object();
}

}  // namespace octet
