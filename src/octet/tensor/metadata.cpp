#include "octet/tensor/metadata.h"

#include <limits>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet {

namespace {

template <typename T>
constexpr std::string_view element_name() {
  if constexpr (std::is_same_v<T, bool>) {
    return "bool";
  } else if constexpr (std::is_same_v<T, float>) {
    return "f32";
  } else if constexpr (std::is_same_v<T, double>) {
    return "f64";
  } else if constexpr (std::is_integral_v<T>) {
    constexpr std::string_view kNames[2][4] = {
        {"u8", "u16", "u32", "u64"}, {"i8", "i16", "i32", "i64"}};
    constexpr int kSizeIndex = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return kNames[std::is_signed_v<T> ? 1 : 0][kSizeIndex];
  } else {
    return "string";
  }
}

template <typename T>
constexpr bool kIsInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>;

[[noreturn]] void throw_wrong_type(
    std::string_view key, std::string_view expected, const MetadataValue& value
) {
  throw Error(
      ErrorKind::kMalformed,
      fmt::format(
          "metadata key '{}': expected {}, found {}", key, expected, metadata_type_name(value)
      )
  );
}

[[noreturn]] void throw_missing(std::string_view key) {
  throw Error(
      ErrorKind::kNotFound, fmt::format("metadata key '{}' is missing; the model needs it", key)
  );
}

template <typename T>
int64_t checked_integer(std::string_view key, T value) {
  if (!std::in_range<int64_t>(value)) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format(
            "metadata key '{}': {} is too large, expected at most {}",
            key,
            value,
            std::numeric_limits<int64_t>::max()
        )
    );
  }
  return static_cast<int64_t>(value);
}

int64_t to_integer(std::string_view key, const MetadataValue& value) {
  return std::visit(
      [&](const auto& held) -> int64_t {
        using T = std::decay_t<decltype(held)>;
        if constexpr (kIsInteger<T>) {
          return checked_integer(key, held);
        } else {
          throw_wrong_type(key, "an integer", value);
        }
      },
      value
  );
}

double to_number(std::string_view key, const MetadataValue& value) {
  return std::visit(
      [&](const auto& held) -> double {
        using T = std::decay_t<decltype(held)>;
        if constexpr (kIsInteger<T> || std::is_floating_point_v<T>) {
          return static_cast<double>(held);
        } else {
          throw_wrong_type(key, "a number", value);
        }
      },
      value
  );
}

std::vector<int64_t> to_integers(std::string_view key, const MetadataValue& value) {
  const auto* array = std::get_if<MetadataArray>(&value);
  if (array == nullptr) {
    throw_wrong_type(key, "an array of integers or bools", value);
  }
  return std::visit(
      [&](const auto& items) -> std::vector<int64_t> {
        using T = typename std::decay_t<decltype(items)>::value_type;
        if constexpr (std::is_integral_v<T>) {
          std::vector<int64_t> result;
          result.reserve(items.size());
          for (const T item : items) {
            if constexpr (std::is_same_v<T, bool>) {
              result.push_back(item ? 1 : 0);
            } else {
              result.push_back(checked_integer(key, item));
            }
          }
          return result;
        } else {
          throw_wrong_type(key, "an array of integers or bools", value);
        }
      },
      *array
  );
}

template <typename T>
const T& require(std::string_view key, const T* value) {
  if (value == nullptr) {
    throw_missing(key);
  }
  return *value;
}

template <typename T>
T require(std::string_view key, const std::optional<T>& value) {
  if (!value) {
    throw_missing(key);
  }
  return *value;
}

}  // namespace

void Metadata::set(std::string key, MetadataValue value) {
  entries_.insert_or_assign(std::move(key), std::move(value));
}

void Metadata::erase(std::string_view key) {
  const auto entry = entries_.find(key);
  if (entry != entries_.end()) {
    entries_.erase(entry);
  }
}

bool Metadata::contains(std::string_view key) const {
  return entries_.find(key) != entries_.end();
}

const MetadataValue* Metadata::find(std::string_view key) const {
  const auto entry = entries_.find(key);
  return entry == entries_.end() ? nullptr : &entry->second;
}

int64_t Metadata::integer(std::string_view key) const {
  return require(key, find_integer(key));
}

double Metadata::number(std::string_view key) const {
  return require(key, find_number(key));
}

bool Metadata::boolean(std::string_view key) const {
  return require(key, find_boolean(key));
}

const std::string& Metadata::string(std::string_view key) const {
  return require(key, find_string(key));
}

std::optional<int64_t> Metadata::find_integer(std::string_view key) const {
  const MetadataValue* value = find(key);
  return value == nullptr ? std::nullopt : std::optional(to_integer(key, *value));
}

std::optional<double> Metadata::find_number(std::string_view key) const {
  const MetadataValue* value = find(key);
  return value == nullptr ? std::nullopt : std::optional(to_number(key, *value));
}

std::optional<bool> Metadata::find_boolean(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  const auto* held = std::get_if<bool>(value);
  if (held == nullptr) {
    throw_wrong_type(key, "a bool", *value);
  }
  return *held;
}

const std::string* Metadata::find_string(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) {
    return nullptr;
  }
  const auto* held = std::get_if<std::string>(value);
  if (held == nullptr) {
    throw_wrong_type(key, "a string", *value);
  }
  return held;
}

const std::vector<std::string_view>* Metadata::find_strings(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) {
    return nullptr;
  }
  const auto* array = std::get_if<MetadataArray>(value);
  const auto* held = array == nullptr ? nullptr : std::get_if<std::vector<std::string_view>>(array);
  if (held == nullptr) {
    throw_wrong_type(key, "an array of strings", *value);
  }
  return held;
}

std::optional<std::vector<int64_t>> Metadata::find_integers(std::string_view key) const {
  const MetadataValue* value = find(key);
  return value == nullptr ? std::nullopt : std::optional(to_integers(key, *value));
}

std::vector<int64_t> Metadata::integers_per_layer(std::string_view key, int64_t count) const {
  const MetadataValue& value = require(key, find(key));
  if (const auto* flag = std::get_if<bool>(&value)) {
    return std::vector<int64_t>(static_cast<size_t>(count), *flag ? 1 : 0);
  }
  if (!std::holds_alternative<MetadataArray>(value)) {
    return std::vector<int64_t>(static_cast<size_t>(count), to_integer(key, value));
  }
  std::vector<int64_t> result = to_integers(key, value);
  if (static_cast<int64_t>(result.size()) != count) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format(
            "metadata key '{}': expected one value or one per layer ({}), found {}",
            key,
            count,
            result.size()
        )
    );
  }
  return result;
}

std::string metadata_type_name(const MetadataValue& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, MetadataArray>) {
          return std::visit(
              [](const auto& items) {
                using Item = typename std::decay_t<decltype(items)>::value_type;
                return fmt::format("array of {}", element_name<Item>());
              },
              held
          );
        } else {
          return std::string(element_name<T>());
        }
      },
      value
  );
}

}  // namespace octet
