// 64-bit size arithmetic that cannot wrap: for products of dimensions and sums of offsets that come
// from files.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace octet {

/// The product of `shape` (1 for an empty one), or nullopt when a dimension is negative or the
/// product exceeds 2^63-1.
inline std::optional<int64_t> checked_elements(std::span<const int64_t> shape) {
  int64_t product = 1;
  for (const int64_t dimension : shape) {
    if (dimension < 0 || __builtin_mul_overflow(product, dimension, &product)) {
      return std::nullopt;
    }
  }
  return product;
}

inline std::optional<int64_t> checked_product(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    return std::nullopt;
  }
  return product;
}

inline std::optional<uint64_t> checked_sum(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) {
    return std::nullopt;
  }
  return sum;
}

/// `value` rounded up to a multiple of `alignment` (a power of two). The caller keeps value below
/// 2^63.
inline uint64_t align_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

}  // namespace octet
