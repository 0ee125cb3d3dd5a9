// Where the blocks of a file keep their codes, for every type whose codes go into tiles: read by
// weight_packing.cpp, put back by weight_unpacking.cpp. Scales and minimums are not in it; what the
// bytes mean is said in tensor/types. A code vector is four consecutive values of a row, one code a
// byte.
// Invariant: put(block, v, codes(block, v)) for every v, into a block of zeros, restores all bits
// of the codes. put() sets bits and clears none, so that nibbles and fifth bits may come one after
// the other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "octet/tensor/dtype.h"
#include "octet/tensor/types/block_bytes.h"

namespace octet::cpu {

/// The low four bits of every byte.
inline constexpr uint32_t kLowNibbles = 0x0F0F0F0F;
/// The lowest bit of every byte.
inline constexpr uint32_t kLowBits = 0x01010101;

/// The four low bits of the four bytes at `bytes`, or the four high ones.
inline uint32_t nibbles_at(const std::byte* bytes, bool high) {
  return (types::load_u32(bytes) >> (high ? 4 : 0)) & kLowNibbles;
}

inline void set_bits(std::byte* bytes, uint32_t bits) {
  types::store_u32(bytes, types::load_u32(bytes) | bits);
}

/// The inverse of nibbles_at: takes the low four bits of every code.
inline void set_nibbles(std::byte* bytes, bool high, uint32_t codes) {
  set_bits(bytes, (codes & kLowNibbles) << (high ? 4 : 0));
}

/// Bit i of `bits` (i = 0..3) becomes bit 0 of byte i.
inline uint32_t spread_bits(uint32_t bits) {
  return ((bits & 15U) * 0x00204081U) & kLowBits;
}

/// The inverse: bit 0 of byte i becomes bit i.
inline uint32_t gather_bits(uint32_t bytes) {
  return ((bytes & kLowBits) * 0x10204080U) >> 28;
}

/// Blocks of 32 with the codes at `offset`: low nibbles are values 0..15, high ones 16..31.
template <int block_bytes, int offset>
struct SplitNibbles {
  static constexpr int64_t kVectors = 8;
  static constexpr int kBytes = block_bytes;
  static uint32_t codes(const std::byte* block, int64_t v) {
    return nibbles_at(block + offset + 4 * (v % 4), v >= 4);
  }
  static void put(std::byte* block, int64_t v, uint32_t codes) {
    set_nibbles(block + offset + 4 * (v % 4), v >= 4, codes);
  }
};

/// Likewise with fifth bits in a 32-bit word before the nibbles.
template <int block_bytes, int offset>
struct SplitNibblesAndFifth {
  using Nibbles = SplitNibbles<block_bytes, offset + 4>;
  static constexpr int64_t kVectors = 8;
  static constexpr int kBytes = block_bytes;
  static uint32_t codes(const std::byte* block, int64_t v) {
    const uint32_t fifth = spread_bits(types::load_u32(block + offset) >> (4 * v));
    return Nibbles::codes(block, v) | (fifth << 4);
  }
  static void put(std::byte* block, int64_t v, uint32_t codes) {
    set_bits(block + offset, gather_bits(codes >> 4) << (4 * v));
    Nibbles::put(block, v, codes);
  }
};

/// The codes of a type: kVectors code vectors in a block of kBytes, and
///   codes(block, v)       code vector v (values 4v..4v+3)
///   put(block, v, codes)  its inverse, on zeros
template <DType dtype>
struct BlockCodes;

template <>
struct BlockCodes<DType::kQ4_0> : SplitNibbles<18, 2> {};
template <>
struct BlockCodes<DType::kQ4_1> : SplitNibbles<20, 4> {};
template <>
struct BlockCodes<DType::kIQ4NL> : SplitNibbles<18, 2> {};
template <>
struct BlockCodes<DType::kMXFP4> : SplitNibbles<17, 1> {};
template <>
struct BlockCodes<DType::kQ5_0> : SplitNibblesAndFifth<22, 2> {};
template <>
struct BlockCodes<DType::kQ5_1> : SplitNibblesAndFifth<24, 4> {};

template <>
struct BlockCodes<DType::kQ8_0> {
  static constexpr int64_t kVectors = 8;
  static constexpr int kBytes = 34;
  static uint32_t codes(const std::byte* block, int64_t v) {
    return types::load_u32(block + 2 + 4 * v);
  }
  static void put(std::byte* block, int64_t v, uint32_t codes) {
    types::store_u32(block + 2 + 4 * v, codes);
  }
};

/// Low nibbles of Q4_K and Q5_K: two groups of 32 share 32 bytes from `offset` on.
template <int offset>
struct PairedNibbles {
  static uint32_t codes(const std::byte* block, int64_t v) {
    return nibbles_at(block + offset + v / 16 * 32 + v % 8 * 4, v / 8 % 2 == 1);
  }
  static void put(std::byte* block, int64_t v, uint32_t codes) {
    set_nibbles(block + offset + v / 16 * 32 + v % 8 * 4, v / 8 % 2 == 1, codes);
  }
};

template <>
struct BlockCodes<DType::kQ4K> : PairedNibbles<16> {
  static constexpr int64_t kVectors = 64;
  static constexpr int kBytes = 144;
};

template <>
struct BlockCodes<DType::kQ5K> {
  using Nibbles = PairedNibbles<48>;
  static constexpr int64_t kVectors = 64;
  static constexpr int kBytes = 176;
  static uint32_t codes(const std::byte* block, int64_t v) {
    const uint32_t fifth = (types::load_u32(block + 16 + v % 8 * 4) >> (v / 8)) & kLowBits;
    return Nibbles::codes(block, v) | (fifth << 4);
  }
  static void put(std::byte* block, int64_t v, uint32_t codes) {
    set_bits(block + 16 + v % 8 * 4, ((codes >> 4) & kLowBits) << (v / 8));
    Nibbles::put(block, v, codes);
  }
};

template <>
struct BlockCodes<DType::kQ6K> {
  static constexpr int64_t kVectors = 64;
  static constexpr int kBytes = 210;
  static constexpr uint32_t kLowPairs = 0x03030303;

  static uint32_t codes(const std::byte* block, int64_t v) {
    const int64_t quarter = v / 8 % 4;
    const uint32_t low = nibbles_at(block + low_at(v), quarter >= 2);
    const uint32_t upper = (types::load_u32(block + upper_at(v)) >> (2 * quarter)) & kLowPairs;
    return low | (upper << 4);
  }
  static void put(std::byte* block, int64_t v, uint32_t codes) {
    const int64_t quarter = v / 8 % 4;
    set_nibbles(block + low_at(v), quarter >= 2, codes);
    set_bits(block + upper_at(v), ((codes >> 4) & kLowPairs) << (2 * quarter));
  }

 private:
  static int64_t low_at(int64_t v) { return v / 32 * 64 + v / 8 % 2 * 32 + v % 8 * 4; }
  static int64_t upper_at(int64_t v) { return 128 + v / 32 * 32 + v % 8 * 4; }
};

/// Groups of `2 * half` values: low nibbles are the first half of a group, high ones the second.
template <int half, int offset>
struct GroupedNibbles {
  static uint32_t codes(const std::byte* block, int64_t v) {
    return nibbles_at(block + at(v), v / kHalfVectors % 2 == 1);
  }
  static void put(std::byte* block, int64_t v, uint32_t codes) {
    set_nibbles(block + at(v), v / kHalfVectors % 2 == 1, codes);
  }

 private:
  static constexpr int64_t kHalfVectors = half / 4;
  static int64_t at(int64_t v) {
    return offset + v / (2 * kHalfVectors) * half + v % kHalfVectors * 4;
  }
};

template <>
struct BlockCodes<DType::kIQ4XS> : GroupedNibbles<16, 8> {
  static constexpr int64_t kVectors = 64;
  static constexpr int kBytes = 136;
};

template <>
struct BlockCodes<DType::kNVFP4> : GroupedNibbles<8, 4> {
  static constexpr int64_t kVectors = 16;
  static constexpr int kBytes = 36;
};

/// Consecutive values are the low and the high nibble of a byte.
template <>
struct BlockCodes<DType::kNVFP4ModelOpt> {
  static constexpr int64_t kVectors = 4;
  static constexpr int kBytes = 8;
  static uint32_t codes(const std::byte* block, int64_t v) {
    const uint32_t packed = types::load_u16(block + 2 * v);
    return (packed & 0xFU) | ((packed & 0xF0U) << 4) | ((packed & 0xF00U) << 8) |
           ((packed & 0xF000U) << 12);
  }
  static void put(std::byte* block, int64_t v, uint32_t codes) {
    const uint32_t packed = (codes & 0xFU) | ((codes >> 4) & 0xF0U) | ((codes >> 8) & 0xF00U) |
                            ((codes >> 12) & 0xF000U);
    types::store_u16(block + 2 * v, static_cast<uint16_t>(packed));
  }
};

}  // namespace octet::cpu
