// Where the bits of a weight lie inside a packed tile: the contract between weight_packing.cpp,
// which writes tiles, the tile kernels of every instruction set, which read them, and
// weight_unpacking.cpp, which reads single rows. Not a file format; free to change.
//
// A tile is kTileRows output rows, cut along K into chunks of kChunkValues values (the last chunk
// may be shorter). One vector lane is one output row: four consecutive values along K of one row
// are neighbours (one 4-byte lane of a byte dot product), so that a broadcast of four activation
// values meets sixteen rows at once. Rows 0..15 are half 0, rows 16..31 half 1. In 4-bit types both
// halves share a byte: half 0 in the low nibble, half 1 in the high one.
// Invariant: a tile has exactly the bytes of the 32 file rows that it replaces, but for rounding up
// to 64 and for IQ4_XS, whose scales take whole bytes (1.5 % more).
#pragma once

#include <algorithm>
#include <cstdint>

#include "octet/base/divide_up.h"
#include "octet/kernels/cpu/matmul_kernels.h"
#include "octet/tensor/dtype.h"

namespace octet::cpu {

inline constexpr int64_t kHalfRows = kTileRows / 2;
/// Bytes of one code vector: four values of sixteen rows.
inline constexpr int64_t kCodeVectorBytes = 4 * kHalfRows;
inline constexpr int64_t kBlockValues = 32;

/// Float weights, value by value along K: F32 and F16 [k][32]; BF16 in pairs [k / 2][32][2], so
/// that a shift and a mask of one 4-byte lane give both values. An odd last value is padded with
/// zero.
struct FloatTile {
  static constexpr int64_t chunk_bytes(DType dtype, int64_t values) {
    return dtype == DType::kF32    ? values * kTileRows * 4
           : dtype == DType::kBF16 ? (values + 1) / 2 * kTileRows * 4
                                   : values * kTileRows * 2;
  }
};

/// Types with one scale per 32 values or finer. `blocks` = blocks of 32 in the chunk, 1..8.
///   codes     [block][8][16 rows][4] nibble pairs; Q8_0: [block][8][32 rows][4] bytes
///   fifth     Q5_*: [block][half][16 rows][4] bytes, bit g belongs to code vector g of the block
///   scales    f16 [block][32]; MXFP4: exponent bytes [block][32]; NVFP4: E4M3 [block][2][32]
///   minimums  Q4_1, Q5_1: f16 [block][32]
struct BlockTile {
  static constexpr int64_t code_bytes(DType dtype) { return dtype == DType::kQ8_0 ? 1024 : 512; }
  static constexpr int64_t fifth_bytes(DType dtype) {
    return dtype == DType::kQ5_0 || dtype == DType::kQ5_1 ? 128 : 0;
  }
  static constexpr int64_t scale_bytes(DType dtype) { return dtype == DType::kMXFP4 ? 32 : 64; }
  static constexpr int64_t minimum_bytes(DType dtype) {
    return dtype == DType::kQ4_1 || dtype == DType::kQ5_1 ? 64 : 0;
  }

  static constexpr int64_t fifth_offset(DType dtype, int64_t blocks) {
    return blocks * code_bytes(dtype);
  }
  static constexpr int64_t scale_offset(DType dtype, int64_t blocks) {
    return fifth_offset(dtype, blocks) + blocks * fifth_bytes(dtype);
  }
  static constexpr int64_t minimum_offset(DType dtype, int64_t blocks) {
    return scale_offset(dtype, blocks) + blocks * scale_bytes(dtype);
  }
  static constexpr int64_t chunk_bytes(DType dtype, int64_t values) {
    const int64_t blocks = (values + kBlockValues - 1) / kBlockValues;
    return minimum_offset(dtype, blocks) + blocks * minimum_bytes(dtype);
  }
};

/// Q4_K and Q5_K, one chunk = one super-block = eight groups of 32:
///   codes     [group][8][16 rows][4] nibble pairs
///   fifth     Q5_K: [group][half][16 rows][4] bytes, bit g belongs to code vector g of the group
///   scales    [half][3][16 rows][4] bytes S0 S1 T; byte j = 0..3 of a row holds in its low 6 bits
///             scale j, scale j + 4 and minimum j, and in its top two bits
///             bits 1-0, 3-2 and 5-4 of minimum j + 4
///   d, dmin   f16 [32] each
struct AffineSuperTile {
  static constexpr int64_t fifth_offset() { return 4096; }
  static constexpr int64_t scale_offset(DType dtype) { return dtype == DType::kQ5K ? 5120 : 4096; }
  static constexpr int64_t d_offset(DType dtype) { return scale_offset(dtype) + 384; }
  static constexpr int64_t dmin_offset(DType dtype) { return d_offset(dtype) + 64; }
  static constexpr int64_t chunk_bytes(DType dtype) { return dmin_offset(dtype) + 64; }
};

/// Q6_K, one chunk = sixteen groups of 16 = four code vectors c0..c3 each, in three vectors of
/// bytes per half:
///   codes     [group][half][3][16 rows][4] bytes: c0, c1, c2 in the low 6 bits, and in the top two
///             bits 5-4, 3-2 and 1-0 of c3
///   scales    i8 [group][32]
///   d         f16 [32]
struct SixBitTile {
  static constexpr int64_t kHalfBytes = 3 * kCodeVectorBytes;
  static constexpr int64_t kGroupBytes = 2 * kHalfBytes;
  static constexpr int64_t kScaleOffset = 16 * kGroupBytes;
  static constexpr int64_t kDOffset = kScaleOffset + 16 * kTileRows;
  static constexpr int64_t kChunkBytes = kDOffset + 64;
};

/// IQ4_XS: codes [group][8][16 rows][4] nibble pairs, then scales i8 [group][32], then d f16 [32].
struct LevelSuperTile {
  static constexpr int64_t kScaleOffset = 4096;
  static constexpr int64_t kDOffset = kScaleOffset + 8 * kTileRows;
  static constexpr int64_t kChunkBytes = kDOffset + 64;
};

/// Bytes of a chunk of `values` (1..kChunkValues) values.
constexpr int64_t chunk_bytes(DType dtype, int64_t values) {
  switch (dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      return FloatTile::chunk_bytes(dtype, values);
    case DType::kQ4K:
    case DType::kQ5K:
      return AffineSuperTile::chunk_bytes(dtype);
    case DType::kQ6K:
      return SixBitTile::kChunkBytes;
    case DType::kIQ4XS:
      return LevelSuperTile::kChunkBytes;
    default:
      return BlockTile::chunk_bytes(dtype, values);
  }
}

constexpr int64_t chunk_count(int64_t cols) {
  return divide_up(cols, kChunkValues);
}

/// Values of chunk `chunk` of a row of `cols`.
constexpr int64_t chunk_values(int64_t cols, int64_t chunk) {
  return static_cast<int64_t>(std::min<int64_t>(kChunkValues, cols - chunk * kChunkValues));
}

/// Bytes of a tile, a multiple of 64 so that every chunk of a full row starts a cache line.
constexpr int64_t tile_bytes(DType dtype, int64_t cols) {
  const int64_t full = cols / kChunkValues;
  const int64_t rest = static_cast<int64_t>(cols % kChunkValues);
  const int64_t bytes =
      full * chunk_bytes(dtype, kChunkValues) + (rest == 0 ? 0 : chunk_bytes(dtype, rest));
  return (bytes + 63) / 64 * 64;
}

static_assert(chunk_bytes(DType::kQ4K, 256) == kTileRows * 144);
static_assert(chunk_bytes(DType::kQ5K, 256) == kTileRows * 176);
static_assert(chunk_bytes(DType::kQ6K, 256) == kTileRows * 210);
static_assert(chunk_bytes(DType::kQ8_0, 256) == kTileRows * 8 * 34);
static_assert(chunk_bytes(DType::kQ5_1, 256) == kTileRows * 8 * 24);
static_assert(chunk_bytes(DType::kNVFP4, 256) == kTileRows * 4 * 36);

}  // namespace octet::cpu
