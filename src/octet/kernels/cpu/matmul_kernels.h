// What one instruction set offers for matrix products: for every weight type a function that
// multiplies one packed tile of weights with any number of packed activation rows. Packing of
// weights is the same for all instruction sets (matmul/tile_layout.h); cpu_matmul.h drives the
// whole. Invariant (the law): the sums of a (row, output) pair come from one fixed order of
// operations along K, whatever the number of rows; nothing here splits K.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "octet/tensor/dtype.h"

namespace octet::cpu {

/// Output rows of one packed tile; matrices are padded with zero rows to a multiple of it.
inline constexpr int64_t kTileRows = 32;
/// Values along K that a kernel finishes before it touches its float sums in memory.
inline constexpr int64_t kChunkValues = 256;

/// How activations are rounded before a product; the numeric contract of each kind is stated in
/// matmul/activation_layout.h.
enum class ActivationKind : uint8_t {
  kF32,         // float32 as given
  kInt8Per32,   // int8, one float scale per 32 values
  kInt8Per256,  // int8, one float scale per 256 values
  kBF16,        // float32 rounded to bfloat16
  kE2M1Per16,   // E2M1 with one E4M3 scale per 16 values and an input scale of the weight
};
inline constexpr int kActivationKindCount = 5;

/// Of weights of a type; NVFP4 can be told otherwise.
constexpr ActivationKind activation_kind(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      return ActivationKind::kF32;
    case DType::kQ4K:
    case DType::kQ5K:
    case DType::kQ6K:
    case DType::kIQ4XS:
      return ActivationKind::kInt8Per256;
    default:
      return ActivationKind::kInt8Per32;
  }
}

/// One chunk of a group of activation rows: `rows` (at most group_rows) rows of `count` <=
/// kChunkValues floats, `stride` apart, to become one record of matmul/activation_layout.h at
/// `record`.
struct ActivationChunk {
  const float* values = nullptr;
  int64_t stride = 0;
  int64_t count = 0;
  int64_t rows = 0;
  std::byte* record = nullptr;
  float input_scale = 1.0F;  // kE2M1Per16
};
using PackActivations = void (*)(const ActivationChunk&) noexcept;

/// sums[r, o] = sum over k of activation[r, k] * tile[o, k], for the kTileRows outputs of one tile.
/// Activation rows are packed in groups of group_rows (the last may be smaller), groups group_bytes
/// apart. Without the weight's global scale.
struct TileProduct {
  const std::byte* tile = nullptr;
  const std::byte* activations = nullptr;
  int64_t group_bytes = 0;
  int64_t cols = 0;
  int64_t rows = 0;
  float* sums = nullptr;  // [rows, kTileRows], 64-byte aligned, overwritten
};
using MultiplyTile = void (*)(const TileProduct&) noexcept;

struct MatmulKernels {
  int64_t group_rows = 0;  // activation rows that share one pass over a weight's bits
  std::array<PackActivations, kActivationKindCount> pack{};
  std::array<MultiplyTile, kDTypeCount> multiply{};
  // NVFP4 with activations of another kind than activation_kind() says.
  MultiplyTile multiply_nvfp4_bf16 = nullptr;
  MultiplyTile multiply_nvfp4_e2m1 = nullptr;
};

}  // namespace octet::cpu
