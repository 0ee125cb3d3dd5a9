// How attention reads stored rows of keys and values (layouts: ops.h), one struct a storage type,
// over a lane type: 32 columns at a time, widened exactly to float32. Columns come in the order
// that costs least, which differs between keys and values; queries are packed, and sums unpacked,
// in the order stated here. No arithmetic of attention (attend_generic.h). Invariant: a lane holds
// one column of one row, whatever the instruction set.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "octet/tensor/types/float_formats.h"

namespace octet::cpu {

/// BF16: a vector of 32-bit words has the even columns in its lower halves and the odd ones in its
/// upper halves, and each widens by one instruction.
template <class L>
struct Bf16Rows {
  using Floats = typename L::Floats;

  static constexpr int64_t row_bytes(int64_t width) { return 2 * width; }
  /// 32 columns of a query as load_keys has them: of every eight the even, then the odd ones.
  static void pack_query(const float* plain, float* packed) {
    for (int i = 0; i < 32; i += 8) {
      for (int j = 0; j < 4; ++j) {
        packed[i + j] = plain[i + 2 * j];
        packed[i + 4 + j] = plain[i + 2 * j + 1];
      }
    }
  }
  /// 32 columns from the order of load, all even ones and then all odd ones.
  static void unpack_value(const float* packed, float* plain) {
    for (int64_t i = 0; i < 16; ++i) {
      plain[2 * i] = packed[i];
      plain[2 * i + 1] = packed[16 + i];
    }
  }

  /// Columns [column, column + 32) of four keys: vector i, lane 4 k + j is place 4 i + j (as in
  /// pack_query) of key k.
  static void load_keys(
      const std::byte* const (&rows)[4], int64_t /*width*/, int64_t column, Floats (&quads)[8]
  ) {
    Floats words[4];
    for (int key = 0; key < 4; ++key) {
      words[key] = L::load(reinterpret_cast<const float*>(rows[key]) + column / 2);
    }
    L::transpose_quads(words);
    for (int i = 0; i < 4; ++i) {
      quads[2 * i] = L::even(words[i]);
      quads[2 * i + 1] = L::odd(words[i]);
    }
  }

  /// Columns [column, column + 32) of one value.
  static void load(
      const std::byte* row, int64_t /*width*/, int64_t column, Floats& first, Floats& second
  ) {
    const Floats words = L::load(reinterpret_cast<const float*>(row) + column / 2);
    first = L::even(words);
    second = L::odd(words);
  }
};

/// Types whose columns widen in their own order; `Read` has row_bytes and load.
template <class L, class Read>
struct PlainRows {
  using Floats = typename L::Floats;

  static constexpr int64_t row_bytes(int64_t width) { return Read::row_bytes(width); }
  static void pack_query(const float* plain, float* packed) { std::copy_n(plain, 32, packed); }
  static void unpack_value(const float* packed, float* plain) { std::copy_n(packed, 32, plain); }

  static void load_keys(
      const std::byte* const (&rows)[4], int64_t width, int64_t column, Floats (&quads)[8]
  ) {
    Floats low[4];
    Floats high[4];
    for (int key = 0; key < 4; ++key) {
      Read::load(rows[key], width, column, low[key], high[key]);
    }
    L::transpose_quads(low);
    L::transpose_quads(high);
    for (int i = 0; i < 4; ++i) {
      quads[i] = low[i];
      quads[4 + i] = high[i];
    }
  }

  static void load(
      const std::byte* row, int64_t width, int64_t column, Floats& first, Floats& second
  ) {
    Read::load(row, width, column, first, second);
  }
};

template <class L>
struct ReadF32 {
  using Floats = typename L::Floats;
  static constexpr int64_t row_bytes(int64_t width) { return 4 * width; }
  static void load(
      const std::byte* row, int64_t /*width*/, int64_t column, Floats& first, Floats& second
  ) {
    const float* from = reinterpret_cast<const float*>(row) + column;
    first = L::load(from);
    second = L::load(from + 16);
  }
};

/// 8-bit codes of the whole row, then one half-precision scale for each 32 of them.
template <class L>
struct ReadQ8 {
  using Floats = typename L::Floats;
  static constexpr int64_t row_bytes(int64_t width) { return width + width / 32 * 2; }
  static void load(
      const std::byte* row, int64_t width, int64_t column, Floats& first, Floats& second
  ) {
    const auto* codes = reinterpret_cast<const int8_t*>(row) + column;
    const auto* scales = reinterpret_cast<const uint16_t*>(row + width);
    const Floats scale = L::set(f16_to_f32(scales[column / 32]));
    first = L::mul(L::from_int8(codes), scale);
    second = L::mul(L::from_int8(codes + 16), scale);
  }
};

template <class L>
using F32Rows = PlainRows<L, ReadF32<L>>;
template <class L>
using Q8Rows = PlainRows<L, ReadQ8<L>>;

}  // namespace octet::cpu
