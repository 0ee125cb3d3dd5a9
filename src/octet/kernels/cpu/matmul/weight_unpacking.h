// From the tiles of tile_layout.h back to single rows: the inverse of weight_packing.h, for tables
// that are a weight too and so need not lie in memory a second time. Puts the blocks of the file
// together again and lets the decoder of the type read them; knows no formula of any type. Not for
// products. Reads a whole half of a tile for a row: cheap next to a forward pass, not next to a row
// of the file.
// Invariant: values are those of decode_rows() on the file's row, bit for bit, wherever
// check_values passes. Not restored are the sign and the NaN of NVFP4's block scales, which packing
// drops: kNVFP4 decodes without them, kNVFP4ModelOpt must have none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "octet/kernels/cpu/matmul/tile_layout.h"

namespace octet::cpu {

/// Where a row lies among the tiles of its weight.
struct TileRow {
  const std::byte* tile = nullptr;  // tile_bytes(dtype, cols) bytes
  int64_t row = 0;                  // inside the tile, 0..kTileRows - 1
  float scale = 1.0F;               // of the tensor (LogicalTensor::scale)
};

/// Decodes a row of `cols` values (whole blocks of the type) into out [cols].
void unpack_row(DType dtype, int64_t cols, const TileRow& from, float* out) noexcept;

}  // namespace octet::cpu
