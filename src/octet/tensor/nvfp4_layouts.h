// The two layouts of NVFP4 hold the same codes and block scales in another order: this turns one
// into the other, bit by bit. Not a quantizer. Invariant: both directions are exact inverses, and
// what decodes to a value before decodes to the same value times the same global scale after.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace octet {

/// One row of ModelOpt's layout: codes [cols / 2], E4M3 block scales [cols / 16].
struct ModelOptRow {
  std::span<const std::byte> codes;
  std::span<const std::byte> scales;
};

/// Into ggml's layout: blocks of 64 values, `out` [cols / 64 * 36]. cols must be a multiple of 64.
/// Scales must be legal (tensor/check_values.h); their sign bit is dropped.
void nvfp4_row_to_ggml(const ModelOptRow& row, std::span<std::byte> out);

/// Out of ggml's layout: codes [cols / 2] and scales [cols / 16].
void nvfp4_row_to_modelopt(
    std::span<const std::byte> row, std::span<std::byte> codes, std::span<std::byte> scales
);

}  // namespace octet
