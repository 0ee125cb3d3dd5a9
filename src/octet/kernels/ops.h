// The semantic operations that models are written in. A backend implements the set (cpu/ now);
// models never see threads, instruction sets or packing.
//
// The law of every operation: a row's result depends only on that row's inputs, never on how many
// rows are computed together, on the number of threads, or on the split of the work. All arithmetic
// is float32 with a fixed order per (row, output); see docs/numerics.md. Operations are noexcept in
// effect: shapes are checked with OCTET_CHECK, inputs are trusted to be well-formed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "octet/base/token.h"
#include "octet/kernels/weight.h"
#include "octet/tensor/checkpoint.h"
#include "octet/tensor/rows.h"

namespace octet {

/// out = x W^T, W [out.cols, x.cols].
struct Product {
  const Weight* weight = nullptr;
  Rows out;
};

/// How keys and values are stored. A row is one head's key or value at one position, its columns
/// padded with zeros to kv_row_width:
///   F32, BF16  the columns;
///   Q8         8-bit codes of all columns, then a half-precision scale for each 32 of them: the
///              values of the weight type Q8_0.
enum class KvType : uint8_t { kF32, kBF16, kQ8 };
std::string_view kv_type_name(KvType type);  // as --kv-type spells it

constexpr int64_t kv_row_width(int64_t head_dim) {
  return (head_dim + 31) / 32 * 32;
}
int64_t kv_row_bytes(KvType type, int64_t head_dim);

/// One layer's keys and values of one sequence: two arrays [kv_heads, capacity] of rows. The
/// position p lives in slot p % capacity; capacity is a multiple of kAttentionChunk, also where it
/// covers every position. Any alignment of float is right; arrays that start on a cache line (64
/// bytes) are read faster.
struct KvView {
  std::byte* keys = nullptr;
  std::byte* values = nullptr;
  KvType type = KvType::kBF16;
  int64_t capacity = 0;
  int kv_heads = 0;
  int head_dim = 0;
};

/// Keys are reduced in chunks of this many positions, aligned to absolute positions, combined in
/// position order.
inline constexpr int64_t kAttentionChunk = 64;

/// The absolute positions [begin, end) that one query row attends to. Never empty.
struct KeyRange {
  int64_t begin = 0;
  int64_t end = 0;
};

/// The rows [first_row, first_row + ranges.size()) of a batch that belong to one sequence.
struct AttendSegment {
  int64_t first_row = 0;
  KvView kv;
  std::span<const KeyRange> ranges;
};

/// Cosines and sines of the rotated pairs for every row: both [rows, pairs]. Element i of a head
/// pairs with i + head_dim/2 (half-split rotation); pairs beyond `pairs` are not rotated.
struct RopeRows {
  ConstRows cosines;
  ConstRows sines;
};

class Ops {
 public:
  virtual ~Ops() = default;

  virtual std::string_view name() const = 0;  // e.g. "cpu/avx512"
  virtual int64_t scratch_bytes() const = 0;  // working memory that is kept between calls

  /// Prepares a matrix [out, in] for matmul. Throws Error(kUnsupported) for shapes the type does
  /// not allow.
  virtual std::unique_ptr<Weight> prepare(const Checkpoint& owner, const LogicalTensor& tensor) = 0;
  /// The resident_bytes of the weight that prepare() would make, or a little more.
  virtual int64_t prepared_bytes(const LogicalTensor& tensor) const = 0;

  /// All products share the input x [n, in]; outs are [n, out]. Any n >= 0.
  virtual void matmul(ConstRows x, std::span<const Product> products) = 0;

  /// out[r] = decode(table[ids[r]]) * scale. table is [ids, cols], used from its mapping.
  virtual void gather_rows(
      const LogicalTensor& table, std::span<const TokenId> ids, float scale, Rows out
  ) = 0;

  /// The same out of a weight [ids, cols] of prepare(): out[r] = scale * the row ids[r] of the
  /// tensor, to the bit what gathering it from the file gives. For a table that is multiplied with
  /// too and whose file is not to be read; slower a row than the file's mapping.
  virtual void gather_rows(
      const Weight& weight, std::span<const TokenId> ids, float scale, Rows out
  ) = 0;

  /// out = x * (mean(x^2) + eps)^-1/2 * w, over segments of `width` values of each row (width ==
  /// cols for a plain norm, head_dim for a per-head norm); w has `width` values or is null for no
  /// weight. out may alias x.
  virtual void rms_norm(ConstRows x, int64_t width, const float* weight, float eps, Rows out) = 0;

  /// residual = (residual + rms(x) * w) * scale: the sandwich norm, the residual addition and
  /// Gemma's layer scalar.
  virtual void add_rms_norm(
      Rows residual, ConstRows x, const float* weight, float eps, float scale
  ) = 0;

  /// Per head: rms norm with w (null: none), then rotation. x is [n, heads * head_dim], in place.
  virtual void norm_rope(
      Rows x, int head_dim, const float* weight, float eps, const RopeRows& rope
  ) = 0;

  /// Rows k, v [n, kv_heads * head_dim] become the cache entries of positions[0..n), rounded to the
  /// type of the cache.
  virtual void store_kv(
      ConstRows k, ConstRows v, std::span<const int64_t> positions, const KvView& kv
  ) = 0;

  /// out[r, h] = softmax(scale * q[r, h] . K[range(r)]) V[range(r)]; q, out are [n, heads *
  /// head_dim]; query head h reads kv head h / (heads / kv_heads). Softmax in float32, chunks
  /// combined in position order.
  virtual void attend(
      ConstRows q, int heads, float scale, std::span<const AttendSegment> segments, Rows out
  ) = 0;

  /// gate = gelu_tanh(gate) * up, exact tanh form within the bound stated in docs/numerics.md.
  virtual void gelu_mul(Rows gate, ConstRows up) = 0;
  /// gate = silu(gate) * up.
  virtual void silu_mul(Rows gate, ConstRows up) = 0;

  virtual void add(Rows x, ConstRows y) = 0;                     // x += y
  virtual void add_scale(Rows x, ConstRows y, float scale) = 0;  // x = (x + y) * scale
  virtual void scale(Rows x, float scale) = 0;                   // x *= scale
  virtual void softcap(Rows x, float cap) = 0;                   // x = cap * tanh(x / cap)

  /// Index of the largest value of each row, the lowest index among equals.
  virtual void argmax(ConstRows x, std::span<TokenId> out) = 0;
};

/// How activations enter products with NVFP4 weights (docs/numerics.md).
///
/// kFast: as 8-bit integers with a scale per 32 values, like those of other 4-bit types.
///
/// kW4A16: as bfloat16.
///
/// kW4A4: as E2M1 with an E4M3 scale per 16 values and the weight's calibrated input scale;
/// preparing a weight without one throws Error(kUnsupported).
///
/// kAuto: as the weight's file says. general.quant_algo "NVFP4" means kW4A4, "W4A16_NVFP4" kW4A16,
/// any other name kW4A4 for weights with an input scale and kW4A16 for others, none kFast.
enum class ActivationMode : uint8_t { kAuto, kFast, kW4A16, kW4A4 };
std::string_view activation_mode_name(ActivationMode mode);  // as --activation spells it

/// threads = 0: all usable CPUs. isa: "" picks the best the CPU has (or OCTET_ISA from the
/// environment); a name that the CPU lacks throws Error(kUnsupported) listing those it has.
struct CpuOptions {
  int threads = 0;
  std::string isa;
  ActivationMode activation = ActivationMode::kAuto;
};
std::unique_ptr<Ops> make_cpu_ops(const CpuOptions& options);

}  // namespace octet
