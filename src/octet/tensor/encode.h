// Encoding of float32 rows to every weight type, byte for byte what ggml's quantizers and
// ModelOpt's NVFP4 export write for the same input. Used by the
// quantizer, by synthetic checkpoints and tests. Not for activations: kernels quantize those their
// own way. Invariant: rows are independent (except ModelOpt's global scale), so callers may encode
// them in any split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "octet/tensor/dtype.h"

namespace octet {

/// Encodes values [rows, cols] into `out`, rows * row_bytes(dtype, cols) bytes. `importance` [cols]
/// weighs the errors of the columns (mean squared activation) or is null; types that do not search
/// ignore it. cols must be a multiple of the block. Not for kNVFP4ModelOpt, see below. Throws
/// Error(kInvalidArgument) on values or importance that are not finite, and on values that are too
/// large for the type: what is written always passes check_values.
void encode_rows(
    DType dtype,
    const float* values,
    int64_t rows,
    int64_t cols,
    const float* importance,
    std::byte* out
);

/// The three tensors of one ModelOpt NVFP4 weight.
struct NVFP4ModelOptData {
  std::vector<std::byte> codes;         // [rows, cols / 2]
  std::vector<std::byte> block_scales;  // [rows, cols / 16], E4M3
  float scale = 0.0F;                   // weight_scale_2
};

struct NVFP4ModelOptOptions {
  /// Largest magnitude over all weights that must share a global scale (q, k, v; gate, up). 0: of
  /// these values.
  float amax = 0.0F;
  /// Calibrated largest magnitudes [rows, cols / 16] (GPTQ); empty: taken from the values.
  std::span<const float> block_amax;
};

/// Encodes values [rows, cols], cols a multiple of 16, after rounding them to bf16, the type
/// ModelOpt exports from.
NVFP4ModelOptData encode_nvfp4_modelopt(
    const float* values, int64_t rows, int64_t cols, const NVFP4ModelOptOptions& options = {}
);

}  // namespace octet
