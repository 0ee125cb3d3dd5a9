#include "octet/models/key_reader.h"

#include <fmt/format.h>

namespace octet {

int64_t KeyReader::integer(std::string_view key, int64_t low, int64_t high) const {
  return in_range(key, metadata_.integer(full(key)), low, high);
}

int64_t KeyReader::integer_or(std::string_view key, int64_t fallback, int64_t low, int64_t high)
    const {
  return in_range(key, metadata_.find_integer(full(key)).value_or(fallback), low, high);
}

double KeyReader::positive(std::string_view key) const {
  return checked_positive(key, metadata_.number(full(key)));
}

double KeyReader::positive_or(std::string_view key, double fallback) const {
  return checked_positive(key, metadata_.find_number(full(key)).value_or(fallback));
}

std::optional<double> KeyReader::zero_or_positive(std::string_view key) const {
  const std::optional<double> value = metadata_.find_number(full(key));
  return !value || *value == 0.0 ? value : checked_positive(key, *value);
}

std::vector<int64_t> KeyReader::per_layer(std::string_view key, int64_t layers, int64_t high)
    const {
  std::vector<int64_t> values = metadata_.integers_per_layer(full(key), layers);
  for (const int64_t value : values) {
    in_range(key, value, 1, high);
  }
  return values;
}

std::vector<bool> KeyReader::flags(std::string_view key, int64_t layers, bool fallback) const {
  const auto found = metadata_.find_integers(full(key));
  if (!found) {
    std::vector<bool> all(static_cast<size_t>(layers), fallback);
    return all;
  }
  if (static_cast<int64_t>(found->size()) != layers) {
    fail(
        ErrorKind::kMalformed,
        key,
        fmt::format("has {} entries for {} layers", found->size(), layers)
    );
  }
  std::vector<bool> values;
  for (const int64_t value : *found) {
    values.push_back(value != 0);
  }
  return values;
}

int KeyReader::head_dim(std::string_view key, std::string_view value_key) const {
  const int64_t keys = integer(key, 2, kMaxHeadDim);
  const int64_t values = integer_or(value_key, keys, 2, kMaxHeadDim);
  if (keys % 2 != 0 || values != keys) {
    fail(
        ErrorKind::kUnsupported,
        key,
        fmt::format("is {} with values of {}, expected equal even sizes", keys, values)
    );
  }
  return static_cast<int>(keys);
}

void KeyReader::expect_rope_width(std::string_view key, int64_t head_dim) const {
  const int64_t width = metadata_.find_integer(full(key)).value_or(head_dim);
  if (width != head_dim) {
    fail(
        ErrorKind::kUnsupported,
        key,
        fmt::format("is {}, expected the head size {}", width, head_dim)
    );
  }
}

void KeyReader::fail(ErrorKind kind, std::string_view key, std::string_view what) const {
  throw Error(kind, fmt::format("{} {}", full(key), what));
}

int64_t KeyReader::in_range(std::string_view key, int64_t value, int64_t low, int64_t high) const {
  if (value < low || value > high) {
    fail(
        ErrorKind::kMalformed,
        key,
        fmt::format("is {}, expected a value in [{}, {}]", value, low, high)
    );
  }
  return value;
}

double KeyReader::checked_positive(std::string_view key, double value) const {
  if (!(value > 0.0 && value < 1e12)) {
    fail(ErrorKind::kMalformed, key, fmt::format("is {}, expected a positive number", value));
  }
  return value;
}

}  // namespace octet
