// One weight as the model means it, wherever its parts lie in the file: NVFP4's codes, block scales
// and global scale are one LogicalTensor. Bytes are borrowed from the Checkpoint that owns the
// storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "octet/tensor/dtype.h"

namespace octet {

struct LogicalTensor {
  std::string name;  // canonical (GGUF) name, e.g. "blk.3.attn_q.weight"
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // outermost first; a matrix is [out, in]; [] is a scalar
  std::span<const std::byte> data;
  std::span<const std::byte> block_scales;  // kNVFP4ModelOpt only: E4M3 [out, in/16]
  float scale = 1.0F;  // NVFP4: weight_scale_2 (ModelOpt) or ".scale" (ggml); 1 for all other types
  std::optional<float> input_scale;  // NVFP4 W4A4: calibrated activation scale

  int64_t elements() const;
  int64_t cols() const;  // last dimension; 1 for a scalar
  int64_t rows() const;  // product of the others
};

/// Where the bytes of one row lie, as LogicalTensor means its parts.
struct EncodedRow {
  const std::byte* data = nullptr;
  const std::byte* block_scales = nullptr;  // kNVFP4ModelOpt only
  float scale = 1.0F;                       // NVFP4 only
};

/// Decodes `cols` values (whole blocks) of a row into out [cols], as decode_rows does.
void decode_row(DType dtype, const EncodedRow& row, int64_t cols, float* out) noexcept;

/// Decodes rows [first, first + count) into out [count, cols], contiguous. Bit-exact to the
/// formats' own decoding (ModelOpt: E2M1 * (e4m3 * scale), the scale product rounded first; ggml
/// NVFP4: decoded value times scale).
void decode_rows(const LogicalTensor& tensor, int64_t first, int64_t count, float* out);

}  // namespace octet
