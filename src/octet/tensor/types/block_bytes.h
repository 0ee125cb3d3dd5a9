// Access to the bytes of a weight block, used by every header of types/: little-endian loads and
// stores of its fields at any alignment, and the order of 4-bit codes that most types share. Not a
// description of any block: layouts are in the header of each type.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "octet/tensor/types/float_formats.h"

namespace octet::types {

static_assert(std::endian::native == std::endian::little, "weight files are little-endian");

inline uint8_t load_u8(const std::byte* bytes) noexcept {
  return static_cast<uint8_t>(*bytes);
}

inline uint16_t load_u16(const std::byte* bytes) noexcept {
  uint16_t value = 0;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

inline uint32_t load_u32(const std::byte* bytes) noexcept {
  uint32_t value = 0;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

inline float load_f16(const std::byte* bytes) noexcept {
  return f16_to_f32(load_u16(bytes));
}

inline void store_u16(std::byte* bytes, uint16_t value) noexcept {
  std::memcpy(bytes, &value, sizeof value);
}

inline void store_u32(std::byte* bytes, uint32_t value) noexcept {
  std::memcpy(bytes, &value, sizeof value);
}

inline void store_f16(std::byte* bytes, float value) noexcept {
  store_u16(bytes, f32_to_f16(value));
}

inline bool is_finite_f16(const std::byte* bytes) noexcept {
  return (load_u16(bytes) & 0x7C00U) != 0x7C00U;
}

inline int low_nibble(std::byte b) noexcept {
  return static_cast<int>(b) & 15;
}

inline int high_nibble(std::byte b) noexcept {
  return static_cast<int>(b) >> 4;
}

/// Calls visit(element, code) for the `2 * half` codes of a group in ggml's order: element j is the
/// low nibble of byte j, element j + half its high nibble.
template <int half, typename Visit>
inline void for_each_code(const std::byte* packed, Visit visit) noexcept {
  for (int j = 0; j < half; ++j) {
    visit(j, low_nibble(packed[j]));
  }
  for (int j = 0; j < half; ++j) {
    visit(j + half, high_nibble(packed[j]));
  }
}

/// The inverse of for_each_code: packs the low four bits of `codes`.
template <int half>
inline void pack_codes(const uint8_t* codes, std::byte* packed) noexcept {
  for (int j = 0; j < half; ++j) {
    packed[j] = static_cast<std::byte>((codes[j] & 15) | ((codes[j + half] & 15) << 4));
  }
}

/// Bit 4 of 32 codes as Q5_0 and Q5_1 store it: bit j belongs to code j.
inline uint32_t fifth_bits(const uint8_t* codes) noexcept {
  uint32_t bits = 0;
  for (int j = 0; j < 32; ++j) {
    bits |= static_cast<uint32_t>((codes[j] >> 4) & 1) << j;
  }
  return bits;
}

}  // namespace octet::types
