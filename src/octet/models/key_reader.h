// Hyperparameters out of canonical metadata: one architecture's prefix, and a range for every
// number, because a file is not trusted. Errors name the key and what was expected; the caller adds
// the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/error.h"
#include "octet/tensor/metadata.h"

namespace octet {

class KeyReader {
 public:
  KeyReader(const Metadata& metadata, std::string_view prefix)
      : metadata_(metadata), prefix_(prefix) {}

  const Metadata& metadata() const { return metadata_; }
  std::string full(std::string_view key) const { return prefix_ + "." + std::string(key); }

  int64_t integer(std::string_view key, int64_t low, int64_t high) const;
  int64_t integer_or(std::string_view key, int64_t fallback, int64_t low, int64_t high) const;
  double positive(std::string_view key) const;
  double positive_or(std::string_view key, double fallback) const;
  /// Where 0 means "off": nullopt when the key is absent, else 0 or a positive number.
  std::optional<double> zero_or_positive(std::string_view key) const;
  /// One value or one a layer, each in [1, high].
  std::vector<int64_t> per_layer(std::string_view key, int64_t layers, int64_t high) const;
  /// An array of `layers` bools; all `fallback` when absent.
  std::vector<bool> flags(std::string_view key, int64_t layers, bool fallback) const;
  /// Head size of keys, which must be even and equal to that of values.
  int head_dim(std::string_view key, std::string_view value_key) const;
  /// The rotated width must be the whole head (pairs that stay have infinite divisors instead).
  void expect_rope_width(std::string_view key, int64_t head_dim) const;

  [[noreturn]] void fail(ErrorKind kind, std::string_view key, std::string_view what) const;

 private:
  int64_t in_range(std::string_view key, int64_t value, int64_t low, int64_t high) const;
  double checked_positive(std::string_view key, double value) const;

  const Metadata& metadata_;
  std::string prefix_;
};

// Bounds that no real model comes near: beyond them a file is damaged or hostile.
inline constexpr int64_t kMaxLayers = 1024;
inline constexpr int64_t kMaxHeads = 1024;
inline constexpr int64_t kMaxHeadDim = 4096;
inline constexpr int64_t kMaxWidth = int64_t{1} << 20;
inline constexpr int64_t kMaxPositions = int64_t{1} << 30;

}  // namespace octet
