// Typed key/value metadata of a checkpoint, with GGUF's value types. Getters never reinterpret: a
// key of the wrong type is an error that names the key, what was expected and what was found.
// Integer getters accept any integer type whose value fits, because converters differ in the width
// they write.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace octet {

/// Strings inside arrays are views into the checkpoint's storage (a vocabulary has 780,000 of
/// them).
using MetadataArray = std::variant<
    std::vector<uint8_t>,
    std::vector<int8_t>,
    std::vector<uint16_t>,
    std::vector<int16_t>,
    std::vector<uint32_t>,
    std::vector<int32_t>,
    std::vector<float>,
    std::vector<bool>,
    std::vector<std::string_view>,
    std::vector<uint64_t>,
    std::vector<int64_t>,
    std::vector<double>>;
using MetadataValue = std::variant<
    uint8_t,
    int8_t,
    uint16_t,
    int16_t,
    uint32_t,
    int32_t,
    float,
    bool,
    std::string,
    uint64_t,
    int64_t,
    double,
    MetadataArray>;

class Metadata {
 public:
  void set(std::string key, MetadataValue value);
  void erase(std::string_view key);  // nothing where there is none
  bool contains(std::string_view key) const;
  const MetadataValue* find(std::string_view key) const;
  const std::map<std::string, MetadataValue, std::less<>>& entries() const { return entries_; }

  // Required values: throw Error(kNotFound) when absent, Error(kMalformed) when of another type.
  int64_t integer(std::string_view key) const;
  double number(std::string_view key) const;  // any float or integer type
  bool boolean(std::string_view key) const;
  const std::string& string(std::string_view key) const;

  // Optional values: nullopt/nullptr when absent, still an error when of another type.
  std::optional<int64_t> find_integer(std::string_view key) const;
  std::optional<double> find_number(std::string_view key) const;
  std::optional<bool> find_boolean(std::string_view key) const;
  const std::string* find_string(std::string_view key) const;
  const std::vector<std::string_view>* find_strings(std::string_view key) const;
  std::optional<std::vector<int64_t>> find_integers(std::string_view key
  ) const;  // array of any integer or bool type

  /// A key that may be one value or one per layer: always `count` values. Throws when an array has
  /// another length.
  std::vector<int64_t> integers_per_layer(std::string_view key, int64_t count) const;

 private:
  std::map<std::string, MetadataValue, std::less<>> entries_;
};

/// "u32", "string", "array of i32", ...: for messages and `octet inspect`.
std::string metadata_type_name(const MetadataValue& value);

}  // namespace octet
