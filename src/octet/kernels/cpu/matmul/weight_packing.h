// From a weight's file layout to the tiles of tile_layout.h. Plain C++, the same for every
// instruction set; fast enough that reading the file is what a load waits for. Not for activations.
// Invariant: packing moves and splits bits, it never changes a value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "octet/kernels/cpu/matmul/tile_layout.h"
#include "octet/tensor/logical_tensor.h"

namespace octet::cpu {

/// Tiles of a matrix with `rows` output rows.
constexpr int64_t tile_count(int64_t rows) {
  return (rows + kTileRows - 1) / kTileRows;
}

/// Writes tile `tile` of the matrix [out, in] to `out`, tile_bytes(dtype, in) bytes. Rows past the
/// end become zero.
void pack_tile(const LogicalTensor& tensor, int64_t tile, std::byte* out) noexcept;

/// What multiplies the finished float sums of a product: the tensor's own scale, and the unit in
/// which NVFP4 and MXFP4 tiles count.
float output_scale(const LogicalTensor& tensor);

/// The same for NVFP4 with E2M1 activations, whose codes are doubled too: the product of both
/// global scales, rounded once.
float w4a4_output_scale(const LogicalTensor& tensor);

}  // namespace octet::cpu
