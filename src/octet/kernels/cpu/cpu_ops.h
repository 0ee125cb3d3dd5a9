// The CPU backend: every operation of Ops as shape checks, a split over the thread pool and calls
// into the kernels of one instruction set. No arithmetic of its own. Invariant: a split never
// changes what a kernel computes for one value, row or head.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "octet/base/function_ref.h"
#include "octet/base/thread_pool.h"
#include "octet/kernels/cpu/cpu_attend.h"
#include "octet/kernels/cpu/cpu_matmul.h"
#include "octet/kernels/cpu/kernel_table.h"
#include "octet/kernels/ops.h"

namespace octet::cpu {

class CpuOps final : public Ops {
 public:
  /// `table` must be runnable here and outlive this object.
  CpuOps(const KernelTable& table, int threads, ActivationMode activation);

  std::string_view name() const override { return name_; }
  int64_t scratch_bytes() const override {
    return matmul_.scratch_bytes() + attend_.scratch_bytes();
  }

  std::unique_ptr<Weight> prepare(const Checkpoint& owner, const LogicalTensor& tensor) override;
  int64_t prepared_bytes(const LogicalTensor& tensor) const override;
  void matmul(ConstRows x, std::span<const Product> products) override;
  void gather_rows(const LogicalTensor& table, std::span<const TokenId> ids, float scale, Rows out)
      override;
  void gather_rows(const Weight& weight, std::span<const TokenId> ids, float scale, Rows out)
      override;
  void rms_norm(ConstRows x, int64_t width, const float* weight, float eps, Rows out) override;
  void add_rms_norm(Rows residual, ConstRows x, const float* weight, float eps, float scale)
      override;
  void norm_rope(Rows x, int head_dim, const float* weight, float eps, const RopeRows& rope)
      override;
  void store_kv(ConstRows k, ConstRows v, std::span<const int64_t> positions, const KvView& kv)
      override;
  void attend(
      ConstRows q, int heads, float scale, std::span<const AttendSegment> segments, Rows out
  ) override;
  void gelu_mul(Rows gate, ConstRows up) override;
  void silu_mul(Rows gate, ConstRows up) override;
  void add(Rows x, ConstRows y) override;
  void add_scale(Rows x, ConstRows y, float scale) override;
  void scale(Rows x, float scale) override;
  void softcap(Rows x, float cap) override;
  void argmax(ConstRows x, std::span<TokenId> out) override;

 private:
  /// body(begin, end) over [0, count) items of `width` values; on all threads when there are more
  /// than `inline_values`.
  void split(
      int64_t count,
      int64_t width,
      int64_t inline_values,
      FunctionRef<void(int64_t begin, int64_t end)> body
  );
  /// out[r] = scale * what decode(ids[r], where) leaves at `where`.
  void gather(
      std::span<const TokenId> ids,
      float scale,
      Rows out,
      FunctionRef<void(TokenId id, float* where)> decode
  );
  /// body(row, begin, end) over pieces of rows.
  void split_values(
      ConstRows shape,
      int64_t inline_values,
      FunctionRef<void(int64_t row, int64_t begin, int64_t end)> body
  );

  std::string name_;
  const VectorKernels& kernels_;
  ThreadPool pool_;
  CpuMatmul matmul_;
  CpuAttend attend_;
};

}  // namespace octet::cpu
