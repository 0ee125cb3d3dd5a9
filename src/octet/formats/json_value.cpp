#include "octet/formats/json_value.h"

#include <algorithm>
#include <set>
#include <simdjson.h>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/mapped_file.h"
#include "octet/formats/message_text.h"

namespace octet {

namespace {

// Nobody's config.json or shard index is larger; a safetensors header has its own limit.
constexpr size_t kMaxFileBytes = size_t{64} << 20U;

[[noreturn]] void malformed(std::string message) {
  throw Error(ErrorKind::kMalformed, std::move(message));
}

void check_unique_names(const JsonObject& object) {
  std::set<std::string_view> names;
  for (const auto& member : object) {
    if (!names.insert(member.first).second) {
      malformed(fmt::format("the name {} is there twice in one JSON object", shown(member.first)));
    }
  }
}

/// Copies simdjson's tree; recursion is bounded by the depth that the parser was given.
class TreeBuilder {
 public:
  explicit TreeBuilder(int64_t max_values) : remaining_(max_values) {}

  JsonValue build(simdjson::dom::element element) {
    if (remaining_-- == 0) {
      malformed("the JSON document has too many values");
    }
    using Type = simdjson::dom::element_type;
    switch (element.type()) {
      case Type::ARRAY:
        return build_array(element);
      case Type::OBJECT:
        return build_object(element);
      case Type::INT64:
        return JsonValue(int64_t{element});
      case Type::UINT64:
        return JsonValue(uint64_t{element});
      case Type::DOUBLE:
        return JsonValue(double{element});
      case Type::BOOL:
        return JsonValue(bool{element});
      case Type::STRING:
        return JsonValue(std::string(std::string_view(element)));
      case Type::NULL_VALUE:
        break;
    }
    return {};
  }

 private:
  JsonValue build_array(simdjson::dom::element element) {
    JsonArray array;
    for (const simdjson::dom::element item : simdjson::dom::array(element)) {
      array.push_back(build(item));
    }
    return JsonValue(std::move(array));
  }

  JsonValue build_object(simdjson::dom::element element) {
    JsonObject object;
    for (const auto [name, value] : simdjson::dom::object(element)) {
      object.emplace_back(std::string(name), build(value));
    }
    check_unique_names(object);
    return JsonValue(std::move(object));
  }

  int64_t remaining_;
};

[[noreturn]] void wrong_type(
    std::string_view name, std::string_view expected, const JsonValue& found
) {
  malformed(fmt::format("{} must be {}, found {}", shown(name), expected, found.type_name()));
}

}  // namespace

std::optional<int64_t> JsonValue::integer() const {
  const auto* value = std::get_if<int64_t>(&storage_);
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

std::optional<double> JsonValue::number() const {
  if (const auto* value = std::get_if<double>(&storage_)) {
    return *value;
  }
  if (const auto* value = std::get_if<int64_t>(&storage_)) {
    return static_cast<double>(*value);
  }
  if (const auto* value = std::get_if<uint64_t>(&storage_)) {
    return static_cast<double>(*value);
  }
  return std::nullopt;
}

std::optional<bool> JsonValue::boolean() const {
  const auto* value = std::get_if<bool>(&storage_);
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

std::string_view JsonValue::type_name() const {
  constexpr std::string_view kNames[] = {
      "null",
      "a boolean",
      "an integer",
      "an integer above 2^63",
      "a number",
      "a string",
      "an array",
      "an object"};
  return kNames[storage_.index()];
}

const JsonValue* JsonValue::find(std::string_view name) const {
  const JsonObject* members = object();
  if (members == nullptr) {
    return nullptr;
  }
  const auto found = std::find_if(members->begin(), members->end(), [&](const auto& member) {
    return member.first == name;
  });
  return found == members->end() || found->second.is_null() ? nullptr : &found->second;
}

std::optional<int64_t> JsonValue::find_integer(std::string_view name) const {
  const JsonValue* value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  const std::optional<int64_t> integer = value->integer();
  if (!integer) {
    wrong_type(name, "an integer", *value);
  }
  return integer;
}

std::optional<double> JsonValue::find_number(std::string_view name) const {
  const JsonValue* value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  const std::optional<double> number = value->number();
  if (!number) {
    wrong_type(name, "a number", *value);
  }
  return number;
}

std::optional<bool> JsonValue::find_boolean(std::string_view name) const {
  const JsonValue* value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  const std::optional<bool> boolean = value->boolean();
  if (!boolean) {
    wrong_type(name, "true or false", *value);
  }
  return boolean;
}

const std::string* JsonValue::find_string(std::string_view name) const {
  const JsonValue* value = find(name);
  if (value != nullptr && value->string() == nullptr) {
    wrong_type(name, "a string", *value);
  }
  return value != nullptr ? value->string() : nullptr;
}

const JsonObject* JsonValue::find_object(std::string_view name) const {
  const JsonValue* value = find(name);
  if (value != nullptr && value->object() == nullptr) {
    wrong_type(name, "an object", *value);
  }
  return value != nullptr ? value->object() : nullptr;
}

const JsonArray* JsonValue::find_array(std::string_view name) const {
  const JsonValue* value = find(name);
  if (value != nullptr && value->array() == nullptr) {
    wrong_type(name, "an array", *value);
  }
  return value != nullptr ? value->array() : nullptr;
}

JsonValue parse_json(std::span<const std::byte> text, const JsonLimits& limits) {
  const simdjson::padded_string padded(reinterpret_cast<const char*>(text.data()), text.size());
  simdjson::dom::parser parser;
  simdjson::error_code error =
      parser.allocate(std::max<size_t>(text.size(), 64), static_cast<size_t>(limits.depth));
  simdjson::dom::element root;
  if (error == simdjson::SUCCESS) {
    error = parser.parse(padded).get(root);
  }
  if (error != simdjson::SUCCESS) {
    malformed(fmt::format("not valid JSON: {}", simdjson::error_message(error)));
  }
  return TreeBuilder(limits.values).build(root);
}

JsonValue read_json_object(const std::string& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  try {
    if (file->bytes().size() > kMaxFileBytes) {
      malformed(fmt::format(
          "{} bytes of JSON; at most {} are allowed", file->bytes().size(), kMaxFileBytes
      ));
    }
    JsonValue value = parse_json(file->bytes());
    if (value.object() == nullptr) {
      malformed(fmt::format("expected a JSON object, found {}", value.type_name()));
    }
    return value;
  } catch (Error& error) {
    error.add_context(path);
    throw;
  }
}

}  // namespace octet
