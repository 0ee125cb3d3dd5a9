// Activations as the tile kernels read them, and how they are rounded: the numeric contract of the
// products.
//
//  kind         weights                               activations become
//  kF32         F32 F16 BF16                          float32 as given
//  kInt8Per32   Q8_0 Q4_0 Q4_1 Q5_0 Q5_1              int8 with one scale per 32 values
//               IQ4_NL MXFP4 NVFP4
//  kInt8Per256  Q4_K Q5_K Q6_K IQ4_XS                 int8 with one scale per 256 values
//  kBF16        NVFP4 in W4A16                        float32 rounded to bfloat16
//  kE2M1Per16   NVFP4 in W4A4                         E2M1 with an E4M3 scale per 16 values
//                                                     (tensor/nvfp4_activations.h)
//
//  scale = amax / 127, code = x * (127 / amax) rounded to nearest, ties to even; codes are zero
//  when 127 / amax is not finite.
//
// For each (row, output): products of integers are summed exactly inside a group that shares one
// weight scale; group sums enter the float32 sum in ascending order along K. In super-blocks of 256
// the groups' sums times their scales are summed first, minimums are subtracted, and the activation
// scale comes last. Float weights: inside a chunk of 256 values one multiply-add a value, even and
// odd ones in a sum each; chunk sums in ascending order. The NVFP4 global scale multiplies the
// final sum. Sets with fused multiply-add use it everywhere, the portable set on machines without
// it rounds twice. MXFP4's smallest scale, 2^-128 (exponent byte 0), counts as zero.
//
// Rows lie interleaved in groups of M = up to group_rows: four values of row 0, of row 1, ..., then
// the next four. A chunk's codes, scales and sums form one record, so that a kernel needs one
// pointer and constant offsets.
// Invariant: a record of a row has the same contents whatever M is.
#pragma once

#include <cstdint>

#include "octet/kernels/cpu/matmul/tile_layout.h"
#include "octet/kernels/cpu/matmul_kernels.h"

namespace octet::cpu {

/// Record of kInt8Per32 with `blocks` blocks of 32 and M rows. Arrays, all of 4-byte elements
/// [..][M]:
///   codes        four int8 [8 * blocks]
///   scales       float [blocks]
///   scaled_sums  float [blocks]: scale * sum of the codes
///   bias32       int32 [blocks]: -signed_bias * sum of the codes (see the lanes of each
///   instruction set) bias16       int32 [2 * blocks]: the same per 16 values
struct Int8Per32Record {
  static constexpr int64_t scales_offset(int64_t rows, int64_t blocks) {
    return 32 * blocks * rows;
  }
  static constexpr int64_t sums_offset(int64_t rows, int64_t blocks) { return 36 * blocks * rows; }
  static constexpr int64_t bias32_offset(int64_t rows, int64_t blocks) {
    return 40 * blocks * rows;
  }
  static constexpr int64_t bias16_offset(int64_t rows, int64_t blocks) {
    return 44 * blocks * rows;
  }
  static constexpr int64_t bytes(int64_t rows, int64_t blocks) { return 52 * blocks * rows; }
};

/// Record of kE2M1Per16 with `blocks` blocks of 32 and M rows. Arrays of 4-byte elements [..][M]:
///   codes   four int8 [8 * blocks]: twice E2M1
///   scales  float [2 * blocks]: E4M3 values
///   bias16  int32 [2 * blocks]: -signed_bias * sum of 16 codes
struct E2M1Per16Record {
  static constexpr int64_t scales_offset(int64_t rows, int64_t blocks) {
    return 32 * blocks * rows;
  }
  static constexpr int64_t bias16_offset(int64_t rows, int64_t blocks) {
    return 40 * blocks * rows;
  }
  static constexpr int64_t bytes(int64_t rows, int64_t blocks) { return 48 * blocks * rows; }
};

/// Record of kInt8Per256. Arrays [..][M] of 4-byte elements:
///   codes      four int8 [64]
///   scales     float [1]
///   pair_sums  two int16 [4]: sums of the codes of the groups of 32 (0,2) (1,3) (4,6) (5,7)
///   bias32     int32 [8]: -signed_bias * sum of 32 codes
///   six_bias   int32 [16]: -32 * sum of 16 codes
struct Int8Per256Record {
  static constexpr int64_t scales_offset(int64_t rows) { return 256 * rows; }
  static constexpr int64_t pair_sums_offset(int64_t rows) { return 260 * rows; }
  static constexpr int64_t bias32_offset(int64_t rows) { return 276 * rows; }
  static constexpr int64_t six_bias_offset(int64_t rows) { return 308 * rows; }
  static constexpr int64_t bytes(int64_t rows) { return 372 * rows; }
};

/// Bytes of the record of a chunk of `values` values of `rows` rows.
constexpr int64_t activation_chunk_bytes(ActivationKind kind, int64_t rows, int64_t values) {
  switch (kind) {
    case ActivationKind::kInt8Per32:
      return Int8Per32Record::bytes(rows, (values + kBlockValues - 1) / kBlockValues);
    case ActivationKind::kInt8Per256:
      return Int8Per256Record::bytes(rows);
    case ActivationKind::kE2M1Per16:
      return E2M1Per16Record::bytes(rows, (values + kBlockValues - 1) / kBlockValues);
    case ActivationKind::kF32:
    case ActivationKind::kBF16:
      break;
  }
  return (values + 1) / 2 * 2 * rows * 4;  // [values][M] floats, an odd last value padded with zero
}

/// Bytes of all records of a group of `rows` rows, rounded up to whole cache lines.
constexpr int64_t activation_group_bytes(ActivationKind kind, int64_t rows, int64_t cols) {
  return (chunk_count(cols) * activation_chunk_bytes(kind, rows, kChunkValues) + 63) / 64 * 64;
}

}  // namespace octet::cpu
