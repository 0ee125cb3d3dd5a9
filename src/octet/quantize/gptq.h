// Rounding to NVFP4 with errors carried over (the rule of GPTQ): every column is rounded in its
// fixed scale, and what that lost is made good in the columns still to come, as far as the Hessian
// of the inputs allows. Not for choosing scales nor for Hessians (hessian.h). Invariant: rows are
// independent and computed in float64 in one order, so codes depend neither on threads nor on how
// many rows come together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "octet/base/thread_pool.h"
#include "octet/quantize/hessian_factor.h"

namespace octet {

/// Rows of a weight and the scales that they are to be rounded in.
struct GptqRows {
  std::span<const float> weights;           // [rows, cols]
  std::span<const std::byte> block_scales;  // [rows, cols / 16], E4M3
  float global_scale = 0.0F;
  int64_t rows = 0;
  int64_t cols = 0;
};

/// Writes codes [rows, cols / 2] in ModelOpt's order. Blocks whose weights are all zero stay zero.
/// Columns are taken in their natural order, kGptqBlock of them before the rest is corrected.
inline constexpr int64_t kGptqBlock = 128;
void round_gptq(
    const GptqRows& rows, const HessianFactor& factor, std::span<std::byte> codes, ThreadPool& pool
);

}  // namespace octet
