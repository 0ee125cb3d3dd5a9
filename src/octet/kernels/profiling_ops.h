// A decorator around any backend that adds up the time of every operation; matrix products are told
// apart by weight type. Off the product's paths: only `octet bench cycle` puts it in between. Adds
// two clock reads a call. Invariant: results are those of the wrapped backend, untouched.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "octet/kernels/ops.h"

namespace octet {

class ProfilingOps final : public Ops {
 public:
  struct Entry {
    double ms = 0.0;
    int64_t calls = 0;
    int64_t bytes = 0;  // weight bytes read by products; 0 for other operations
  };
  using Profile = std::map<std::string, Entry, std::less<>>;

  explicit ProfilingOps(std::unique_ptr<Ops> ops) : owned_(std::move(ops)), ops_(*owned_) {}

  /// What ran since the last take(), by operation ("matmul Q4_K", "attend", ...).
  Profile take();

  std::string_view name() const override { return ops_.name(); }
  int64_t scratch_bytes() const override { return ops_.scratch_bytes(); }
  std::unique_ptr<Weight> prepare(const Checkpoint& owner, const LogicalTensor& tensor) override;
  int64_t prepared_bytes(const LogicalTensor& tensor) const override {
    return ops_.prepared_bytes(tensor);
  }
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
  template <typename Call>
  void timed(std::string_view operation, int64_t bytes, Call&& call);

  std::unique_ptr<Ops> owned_;
  Ops& ops_;
  Profile profile_;
};

}  // namespace octet
