#include "octet/kernels/profiling_ops.h"

#include <utility>

#include <fmt/format.h>

#include "octet/tensor/dtype.h"

namespace octet {

template <typename Call>
void ProfilingOps::timed(std::string_view operation, int64_t bytes, Call&& call) {
  const auto begin = std::chrono::steady_clock::now();
  std::forward<Call>(call)();
  const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - begin;
  auto at = profile_.find(operation);
  if (at == profile_.end()) {
    at = profile_.emplace(std::string(operation), Entry{}).first;
  }
  at->second.ms += ms.count();
  ++at->second.calls;
  at->second.bytes += bytes;
}

ProfilingOps::Profile ProfilingOps::take() {
  return std::exchange(profile_, {});
}

std::unique_ptr<Weight> ProfilingOps::prepare(
    const Checkpoint& owner, const LogicalTensor& tensor
) {
  return ops_.prepare(owner, tensor);
}

void ProfilingOps::matmul(ConstRows x, std::span<const Product> products) {
  if (products.empty()) {
    return;
  }
  int64_t bytes = 0;
  for (const Product& product : products) {
    bytes += product.weight->resident_bytes;
  }
  // Products of one call share their input and nearly always their type; the first names the entry.
  const std::string operation =
      fmt::format("matmul {}", dtype_facts(products.front().weight->dtype).name);
  timed(operation, bytes, [&] { ops_.matmul(x, products); });
}

void ProfilingOps::gather_rows(
    const LogicalTensor& table, std::span<const TokenId> ids, float scale, Rows out
) {
  timed("gather_rows", 0, [&] { ops_.gather_rows(table, ids, scale, out); });
}
void ProfilingOps::gather_rows(
    const Weight& weight, std::span<const TokenId> ids, float scale, Rows out
) {
  timed("gather_rows", 0, [&] { ops_.gather_rows(weight, ids, scale, out); });
}
void ProfilingOps::rms_norm(ConstRows x, int64_t width, const float* weight, float eps, Rows out) {
  timed("rms_norm", 0, [&] { ops_.rms_norm(x, width, weight, eps, out); });
}
void ProfilingOps::add_rms_norm(
    Rows residual, ConstRows x, const float* weight, float eps, float scale
) {
  timed("add_rms_norm", 0, [&] { ops_.add_rms_norm(residual, x, weight, eps, scale); });
}
void ProfilingOps::norm_rope(
    Rows x, int head_dim, const float* weight, float eps, const RopeRows& rope
) {
  timed("norm_rope", 0, [&] { ops_.norm_rope(x, head_dim, weight, eps, rope); });
}
void ProfilingOps::store_kv(
    ConstRows k, ConstRows v, std::span<const int64_t> positions, const KvView& kv
) {
  timed("store_kv", 0, [&] { ops_.store_kv(k, v, positions, kv); });
}
void ProfilingOps::attend(
    ConstRows q, int heads, float scale, std::span<const AttendSegment> segments, Rows out
) {
  timed("attend", 0, [&] { ops_.attend(q, heads, scale, segments, out); });
}
void ProfilingOps::gelu_mul(Rows gate, ConstRows up) {
  timed("gelu_mul", 0, [&] { ops_.gelu_mul(gate, up); });
}
void ProfilingOps::silu_mul(Rows gate, ConstRows up) {
  timed("silu_mul", 0, [&] { ops_.silu_mul(gate, up); });
}
void ProfilingOps::add(Rows x, ConstRows y) {
  timed("add", 0, [&] { ops_.add(x, y); });
}
void ProfilingOps::add_scale(Rows x, ConstRows y, float scale) {
  timed("add_scale", 0, [&] { ops_.add_scale(x, y, scale); });
}
void ProfilingOps::scale(Rows x, float scale) {
  timed("scale", 0, [&] { ops_.scale(x, scale); });
}
void ProfilingOps::softcap(Rows x, float cap) {
  timed("softcap", 0, [&] { ops_.softcap(x, cap); });
}
void ProfilingOps::argmax(ConstRows x, std::span<TokenId> out) {
  timed("argmax", 0, [&] { ops_.argmax(x, out); });
}

}  // namespace octet
