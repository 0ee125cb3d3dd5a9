// A parsed JSON document of a checkpoint (config.json, a safetensors header, a shard index) as a
// plain tree. Not for tokenizer.json, which is large and has its own reader in text/. Invariant:
// names inside an object are unique, nesting and the number of values are bounded: a document that
// breaks this is an Error, never a silent choice of one of two values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace octet {

class JsonValue;
using JsonArray = std::vector<JsonValue>;
using JsonObject = std::vector<std::pair<std::string, JsonValue>>;  // in the order of the document

class JsonValue {
 public:
  using Storage = std::
      variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string, JsonArray, JsonObject>;

  JsonValue() = default;
  explicit JsonValue(Storage storage) : storage_(std::move(storage)) {}

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(storage_); }
  const JsonArray* array() const { return std::get_if<JsonArray>(&storage_); }
  const JsonObject* object() const { return std::get_if<JsonObject>(&storage_); }
  const std::string* string() const { return std::get_if<std::string>(&storage_); }
  std::optional<int64_t> integer() const;  // nullopt for anything but an integer within int64
  std::optional<double> number() const;
  std::optional<bool> boolean() const;
  std::string_view type_name() const;  // "an object", "a string", ... for messages

  // Members of an object by name. An absent member and null are the same: nullopt/nullptr. A member
  // of another type throws Error(kMalformed) naming it and the type it should have.
  const JsonValue* find(std::string_view name) const;
  std::optional<int64_t> find_integer(std::string_view name) const;
  std::optional<double> find_number(std::string_view name) const;
  std::optional<bool> find_boolean(std::string_view name) const;
  const std::string* find_string(std::string_view name) const;
  const JsonObject* find_object(std::string_view name) const;
  const JsonArray* find_array(std::string_view name) const;

 private:
  Storage storage_ = nullptr;
};

struct JsonLimits {
  int depth = 16;
  int64_t values = 1 << 20;
};

/// Throws Error(kMalformed) for anything but one JSON document within the limits.
JsonValue parse_json(std::span<const std::byte> text, const JsonLimits& limits = {});

/// Reads and parses a file; errors carry its path. The document must be an object.
JsonValue read_json_object(const std::string& path);

}  // namespace octet
