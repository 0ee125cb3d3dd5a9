// The single-threaded vector kernels of one instruction set: norms, rotation, elementwise work,
// attention. Not matrix products (matmul_kernels.h), no shapes checks and no threads (cpu_ops.h).
// Invariant: every entry computes a value with one fixed order of roundings, whatever surrounds it.
// All sets that have fused multiply-add give identical bits; the portable set rounds products and
// sums separately.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "octet/kernels/ops.h"

namespace octet::cpu {

/// Attention handles keys in groups of this many positions, aligned to absolute positions: one
/// maximum and one weighted sum a group. Groups are then merged in position order, so that they can
/// be computed by different threads.
inline constexpr int64_t kAttendGroup = 4 * kAttentionChunk;
/// Floats from one query's scores to the next: kernels may write a little past the group.
inline constexpr int64_t kAttendScoreStride = kAttendGroup + 16;
/// Attention kernels take queries in multiples of this; surplus queries are computed and ignored.
inline constexpr int64_t kAttendQueryMultiple = 4;

/// Floats of one packed query and of one weighted sum. Their order inside is a secret of the
/// kernels.
constexpr int64_t attend_width(int64_t head_dim) {
  return kv_row_width(head_dim);
}
/// Attention kernels widen keys and values in blocks of at most this size.
inline constexpr int64_t kAttendStagedKeys = 16;
inline constexpr int64_t kAttendStagedValues = int64_t{64} * 64;
constexpr int64_t attend_staged_floats(int64_t head_dim) {
  return std::max(kAttendStagedKeys * attend_width(head_dim), kAttendStagedValues);
}

/// softmax's running state of consecutive queries: value = weighted / sum, weights are relative to
/// exp(maximum). sum == 0 says that no key was seen.
struct AttendState {
  float* maximum = nullptr;   // [queries]
  float* sum = nullptr;       // [queries]
  float* weighted = nullptr;  // [queries, attend_width(head_dim)]
};

/// Queries of one sequence that read the same kv head, and one group of its keys.
struct AttendTile {
  const float* queries = nullptr;     // packed, [count, attend_width(head_dim)]
  int64_t count = 0;                  // multiple of kAttendQueryMultiple
  const KeyRange* ranges = nullptr;   // [count], inside the group; may be empty (begin >= end)
  const std::byte* keys = nullptr;    // of this kv head: [capacity] rows
  const std::byte* values = nullptr;  // likewise
  KvType type = KvType::kBF16;
  int64_t capacity = 0;
  int64_t head_dim = 0;
  int64_t group_begin = 0;               // absolute position, multiple of kAttendGroup
  float* scores = nullptr;               // scratch, [count, kAttendScoreStride]
  float* staged = nullptr;               // scratch, [attend_staged_floats(head_dim)]
  bool keys_asked = false;               // the call before asked the memory for these keys
  std::span<const std::byte> next_keys;  // what this call asks for: keys of the group after this
  AttendState out;                       // overwritten
};

struct VectorKernels {
  /// out = x * (mean(x^2) + eps)^-1/2 * weight; weight may be null; out may be x.
  void (*rms_norm
  )(const float* x, const float* weight, int64_t width, float eps, float* out) noexcept;
  /// residual = (residual + rms_norm(x)) * scale.
  void (*add_rms_norm
  )(float* residual, const float* x, const float* weight, int64_t width, float eps, float scale
  ) noexcept;
  /// Rotates the pairs (i, i + head_dim / 2), i < pairs, of one head.
  void (*rotate
  )(float* head, int64_t head_dim, int64_t pairs, const float* cosines, const float* sines
  ) noexcept;

  void (*gelu_mul)(float* gate, const float* up, int64_t count) noexcept;
  void (*silu_mul)(float* gate, const float* up, int64_t count) noexcept;
  void (*add)(float* x, const float* y, int64_t count) noexcept;
  void (*add_scale)(float* x, const float* y, float scale, int64_t count) noexcept;
  void (*scale)(float* x, float scale, int64_t count) noexcept;
  void (*softcap)(float* x, float cap, int64_t count) noexcept;
  void (*exponential)(float* x, int64_t count) noexcept;  // x = e^x

  /// Lowest index of the largest value. NaN never wins; 0 when everything is NaN. count >= 1.
  int64_t (*argmax)(const float* x, int64_t count) noexcept;
  /// Rounds to nearest, ties to even; NaN stays NaN.
  void (*to_bf16)(const float* x, uint16_t* out, int64_t count) noexcept;
  /// One block of 32 values as Q8_0: the codes, and the scale as a half. A block with NaN or
  /// infinity gets NaN for a scale.
  uint16_t (*to_q8)(const float* x, int8_t* codes) noexcept;

  /// One query [head_dim] times `scale`, in the order that attend_group wants for keys of `type`.
  void (*attend_pack
  )(const float* query, float scale, KvType type, int64_t head_dim, float* packed) noexcept;
  void (*attend_group)(const AttendTile& tile) noexcept;
  /// state = state and then `next`, for `count` queries. `width` is attend_width.
  void (*attend_merge
  )(const AttendState& state, const AttendState& next, int64_t count, int64_t width) noexcept;
  /// out [head_dim] = weighted / sum, back in plain order.
  void (*attend_finish
  )(const float* weighted, float sum, KvType type, int64_t head_dim, float* out) noexcept;
};

}  // namespace octet::cpu
