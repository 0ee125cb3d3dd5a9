// A backend that hands every operation to another one: the base of decorators that change or watch
// a few of them. Adds one virtual call. Invariant: results are those of the wrapped backend.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "octet/kernels/ops.h"

namespace octet {

class ForwardingOps : public Ops {
 public:
  explicit ForwardingOps(std::unique_ptr<Ops> ops) : ops_(std::move(ops)) {}

  std::string_view name() const override { return ops_->name(); }
  int64_t scratch_bytes() const override { return ops_->scratch_bytes(); }
  int64_t prepared_bytes(const LogicalTensor& tensor) const override {
    return ops_->prepared_bytes(tensor);
  }
  std::unique_ptr<Weight> prepare(const Checkpoint& owner, const LogicalTensor& tensor) override {
    return ops_->prepare(owner, tensor);
  }
  void matmul(ConstRows x, std::span<const Product> products) override {
    ops_->matmul(x, products);
  }
  void gather_rows(const LogicalTensor& table, std::span<const TokenId> ids, float scale, Rows out)
      override {
    ops_->gather_rows(table, ids, scale, out);
  }
  void gather_rows(const Weight& weight, std::span<const TokenId> ids, float scale, Rows out)
      override {
    ops_->gather_rows(weight, ids, scale, out);
  }
  void rms_norm(ConstRows x, int64_t width, const float* weight, float eps, Rows out) override {
    ops_->rms_norm(x, width, weight, eps, out);
  }
  void add_rms_norm(Rows residual, ConstRows x, const float* weight, float eps, float scale)
      override {
    ops_->add_rms_norm(residual, x, weight, eps, scale);
  }
  void norm_rope(Rows x, int head_dim, const float* weight, float eps, const RopeRows& rope)
      override {
    ops_->norm_rope(x, head_dim, weight, eps, rope);
  }
  void store_kv(ConstRows k, ConstRows v, std::span<const int64_t> positions, const KvView& kv)
      override {
    ops_->store_kv(k, v, positions, kv);
  }
  void attend(
      ConstRows q, int heads, float scale, std::span<const AttendSegment> segments, Rows out
  ) override {
    ops_->attend(q, heads, scale, segments, out);
  }
  void gelu_mul(Rows gate, ConstRows up) override { ops_->gelu_mul(gate, up); }
  void silu_mul(Rows gate, ConstRows up) override { ops_->silu_mul(gate, up); }
  void add(Rows x, ConstRows y) override { ops_->add(x, y); }
  void add_scale(Rows x, ConstRows y, float scale) override { ops_->add_scale(x, y, scale); }
  void scale(Rows x, float scale) override { ops_->scale(x, scale); }
  void softcap(Rows x, float cap) override { ops_->softcap(x, cap); }
  void argmax(ConstRows x, std::span<TokenId> out) override { ops_->argmax(x, out); }

 protected:
  Ops& wrapped() { return *ops_; }

 private:
  std::unique_ptr<Ops> ops_;
};

}  // namespace octet
