#include "octet/kernels/cpu/cpu_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/base/error.h"
#include "octet/kernels/cpu/isa_table.h"

namespace octet::cpu {
namespace {

// Values below which one thread is faster than waking the others (a fork and join costs about two
// microseconds).
constexpr int64_t kInlineCheap = 32768;  // a load, an operation, a store
constexpr int64_t kInlineCostly = 4096;  // an exponential
constexpr int64_t kGrain = 1024;         // whole vectors and cache lines for every thread

void check_same_shape(ConstRows a, ConstRows b) {
  OCTET_CHECK(a.rows == b.rows && a.cols == b.cols);
}

/// `ids` of a table [rows, cols] become the rows of `out`.
void check_gathered(std::span<const TokenId> ids, int64_t rows, int64_t cols, ConstRows out) {
  OCTET_CHECK(static_cast<int64_t>(ids.size()) == out.rows && cols == out.cols);
  for (const TokenId id : ids) {
    OCTET_CHECK(id >= 0 && id < rows);
  }
}

/// One key or value [head_dim] becomes a row of the cache.
void store_row(const VectorKernels& kernels, const float* from, const KvView& kv, std::byte* to) {
  const int64_t width = kv_row_width(kv.head_dim);
  const auto padding = static_cast<size_t>(width - kv.head_dim);
  switch (kv.type) {
    case KvType::kF32: {
      auto* values = reinterpret_cast<float*>(to);
      std::copy_n(from, kv.head_dim, values);
      std::fill_n(values + kv.head_dim, padding, 0.0F);
      break;
    }
    case KvType::kBF16: {
      auto* values = reinterpret_cast<uint16_t*>(to);
      kernels.to_bf16(from, values, kv.head_dim);
      std::fill_n(values + kv.head_dim, padding, uint16_t{0});
      break;
    }
    case KvType::kQ8: {
      constexpr int64_t kBlock = 32;
      auto* codes = reinterpret_cast<int8_t*>(to);
      auto* scales = reinterpret_cast<uint16_t*>(to + width);
      for (int64_t c = 0; c < kv.head_dim; c += kBlock) {
        std::array<float, kBlock> block{};
        std::copy_n(from + c, std::min(kBlock, kv.head_dim - c), block.data());
        scales[c / kBlock] = kernels.to_q8(block.data(), codes + c);
      }
      break;
    }
  }
}

/// The better of two candidates of a row, `a` having the lower index; NaN never wins.
int64_t larger(const float* row, int64_t a, int64_t b) {
  return row[b] > row[a] || (std::isnan(row[a]) && !std::isnan(row[b])) ? b : a;
}

/// Asks for the pages of several rows of a mapped table at once, so that reads from disk overlap;
/// faults in turn would wait for one another. Advice only: rows in memory already cost a system
/// call each.
void request_rows(const LogicalTensor& table, std::span<const TokenId> ids) {
  static const auto kPageBytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto bytes = static_cast<uintptr_t>(row_bytes(table.dtype, table.cols()));
  for (const TokenId id : ids) {
    const auto row =
        reinterpret_cast<uintptr_t>(table.data.data()) + bytes * static_cast<uintptr_t>(id);
    const uintptr_t page = row / kPageBytes * kPageBytes;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): whole pages are found by arithmetic
    static_cast<void>(::madvise(reinterpret_cast<void*>(page), row + bytes - page, MADV_WILLNEED));
  }
}

}  // namespace

CpuOps::CpuOps(const KernelTable& table, int threads, ActivationMode activation)
    : name_(fmt::format("cpu/{}", table.name)),
      kernels_(table.vector),
      pool_(threads),
      matmul_(table, pool_, activation),
      attend_(table.vector, pool_) {}

void CpuOps::split(
    int64_t count,
    int64_t width,
    int64_t inline_values,
    FunctionRef<void(int64_t begin, int64_t end)> body
) {
  if (count * width <= inline_values) {
    if (count > 0) {
      body(0, count);
    }
    return;
  }
  pool_.for_ranges(count, 1, body);
}

void CpuOps::split_values(
    ConstRows shape,
    int64_t inline_values,
    FunctionRef<void(int64_t row, int64_t begin, int64_t end)> body
) {
  const auto pieces = [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t row = begin / shape.cols;
      const int64_t first = begin - row * shape.cols;
      const int64_t last = std::min(shape.cols, first + (end - begin));
      body(row, first, last);
      begin += last - first;
    }
  };
  const int64_t values = shape.rows * shape.cols;
  if (values <= inline_values) {
    pieces(0, values);
  } else {
    pool_.for_ranges(values, kGrain, pieces);
  }
}

std::unique_ptr<Weight> CpuOps::prepare(const Checkpoint& owner, const LogicalTensor& tensor) {
  return matmul_.prepare(owner, tensor);
}

int64_t CpuOps::prepared_bytes(const LogicalTensor& tensor) const {
  return CpuMatmul::prepared_bytes(tensor);
}

void CpuOps::matmul(ConstRows x, std::span<const Product> products) {
  matmul_.matmul(x, products);
}

void CpuOps::gather(
    std::span<const TokenId> ids,
    float scale,
    Rows out,
    FunctionRef<void(TokenId id, float* where)> decode
) {
  split(out.rows, out.cols, kInlineCostly, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      decode(ids[static_cast<size_t>(r)], out.row(r));
      if (scale != 1.0F) {
        kernels_.scale(out.row(r), scale, out.cols);
      }
    }
  });
}

void CpuOps::gather_rows(
    const LogicalTensor& table, std::span<const TokenId> ids, float scale, Rows out
) {
  check_gathered(ids, table.rows(), table.cols(), out);
  if (ids.size() > 1) {
    request_rows(table, ids);
  }
  gather(ids, scale, out, [&](TokenId id, float* where) { decode_rows(table, id, 1, where); });
}

void CpuOps::gather_rows(
    const Weight& weight, std::span<const TokenId> ids, float scale, Rows out
) {
  check_gathered(ids, weight.rows, weight.cols, out);
  gather(ids, scale, out, [&](TokenId id, float* where) {
    CpuMatmul::unpack_row(weight, id, where);
  });
}

void CpuOps::rms_norm(ConstRows x, int64_t width, const float* weight, float eps, Rows out) {
  check_same_shape(x, out);
  OCTET_CHECK(width > 0 && x.cols % width == 0);
  const int64_t parts = x.cols / width;
  split(x.rows * parts, width, kInlineCheap, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t offset = i % parts * width;
      const int64_t r = i / parts;
      kernels_.rms_norm(x.row(r) + offset, weight, width, eps, out.row(r) + offset);
    }
  });
}

void CpuOps::add_rms_norm(Rows residual, ConstRows x, const float* weight, float eps, float scale) {
  check_same_shape(residual, x);
  split(x.rows, x.cols, kInlineCheap, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      kernels_.add_rms_norm(residual.row(r), x.row(r), weight, x.cols, eps, scale);
    }
  });
}

void CpuOps::norm_rope(Rows x, int head_dim, const float* weight, float eps, const RopeRows& rope) {
  OCTET_CHECK(head_dim > 0 && head_dim % 2 == 0 && x.cols % head_dim == 0);
  OCTET_CHECK(rope.cosines.rows == x.rows && rope.sines.rows == x.rows);
  OCTET_CHECK(rope.cosines.cols == rope.sines.cols && rope.cosines.cols <= head_dim / 2);
  const int64_t heads = x.cols / head_dim;
  split(x.rows * heads, head_dim, kInlineCheap, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t r = i / heads;
      float* head = x.row(r) + i % heads * head_dim;
      kernels_.rms_norm(head, weight, head_dim, eps, head);
      kernels_.rotate(head, head_dim, rope.cosines.cols, rope.cosines.row(r), rope.sines.row(r));
    }
  });
}

void CpuOps::store_kv(
    ConstRows k, ConstRows v, std::span<const int64_t> positions, const KvView& kv
) {
  check_same_shape(k, v);
  OCTET_CHECK(static_cast<int64_t>(positions.size()) == k.rows);
  OCTET_CHECK(k.cols == static_cast<int64_t>(kv.kv_heads) * kv.head_dim);
  const int64_t row_bytes = kv_row_bytes(kv.type, kv.head_dim);
  // Rows may share a slot (a ring shorter than the batch): then the last one must win, so heads are
  // split, not rows.
  split(kv.kv_heads, k.rows * kv.head_dim, kInlineCheap, [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head) {
      for (int64_t r = 0; r < k.rows; ++r) {
        const int64_t position = positions[static_cast<size_t>(r)];
        OCTET_CHECK(position >= 0);
        const int64_t slot = head * kv.capacity + position % kv.capacity;
        const int64_t column = head * kv.head_dim;
        store_row(kernels_, k.row(r) + column, kv, kv.keys + slot * row_bytes);
        store_row(kernels_, v.row(r) + column, kv, kv.values + slot * row_bytes);
      }
    }
  });
}

void CpuOps::attend(
    ConstRows q, int heads, float scale, std::span<const AttendSegment> segments, Rows out
) {
  attend_.attend(q, heads, scale, segments, out);
}

void CpuOps::gelu_mul(Rows gate, ConstRows up) {
  check_same_shape(gate, up);
  split_values(gate, kInlineCostly, [&](int64_t row, int64_t begin, int64_t end) {
    kernels_.gelu_mul(gate.row(row) + begin, up.row(row) + begin, end - begin);
  });
}

void CpuOps::silu_mul(Rows gate, ConstRows up) {
  check_same_shape(gate, up);
  split_values(gate, kInlineCostly, [&](int64_t row, int64_t begin, int64_t end) {
    kernels_.silu_mul(gate.row(row) + begin, up.row(row) + begin, end - begin);
  });
}

void CpuOps::add(Rows x, ConstRows y) {
  check_same_shape(x, y);
  split_values(x, kInlineCheap, [&](int64_t row, int64_t begin, int64_t end) {
    kernels_.add(x.row(row) + begin, y.row(row) + begin, end - begin);
  });
}

void CpuOps::add_scale(Rows x, ConstRows y, float scale) {
  check_same_shape(x, y);
  split_values(x, kInlineCheap, [&](int64_t row, int64_t begin, int64_t end) {
    kernels_.add_scale(x.row(row) + begin, y.row(row) + begin, scale, end - begin);
  });
}

void CpuOps::scale(Rows x, float scale) {
  split_values(x, kInlineCheap, [&](int64_t row, int64_t begin, int64_t end) {
    kernels_.scale(x.row(row) + begin, scale, end - begin);
  });
}

void CpuOps::softcap(Rows x, float cap) {
  split_values(x, kInlineCostly, [&](int64_t row, int64_t begin, int64_t end) {
    kernels_.softcap(x.row(row) + begin, cap, end - begin);
  });
}

void CpuOps::argmax(ConstRows x, std::span<TokenId> out) {
  OCTET_CHECK(static_cast<int64_t>(out.size()) == x.rows && x.cols > 0);
  const int64_t parts = x.rows * x.cols <= kInlineCheap ? 1 : pool_.threads();
  std::vector<int64_t> best(static_cast<size_t>(x.rows * parts), -1);
  split(x.rows * parts, x.cols / parts, kInlineCheap, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t part = i % parts;
      const int64_t first = x.cols * part / parts;
      const int64_t count = x.cols * (part + 1) / parts - first;
      if (count > 0) {
        best[static_cast<size_t>(i)] = first + kernels_.argmax(x.row(i / parts) + first, count);
      }
    }
  });
  for (int64_t r = 0; r < x.rows; ++r) {
    int64_t index = -1;
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t candidate = best[static_cast<size_t>(r * parts + part)];
      if (candidate >= 0) {
        index = index < 0 ? candidate : larger(x.row(r), index, candidate);
      }
    }
    out[static_cast<size_t>(r)] = static_cast<TokenId>(index);
  }
}

}  // namespace octet::cpu

namespace octet {

std::unique_ptr<Ops> make_cpu_ops(const CpuOptions& options) {
  constexpr int kMostThreads = 1024;
  if (options.threads < 0 || options.threads > kMostThreads) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "{} threads: expected 1 to {}, or 0 for all usable CPUs", options.threads, kMostThreads
        )
    );
  }
  const int threads = options.threads == 0 ? ThreadPool::usable_cpus() : options.threads;
  return std::make_unique<cpu::CpuOps>(cpu::choose_table(options.isa), threads, options.activation);
}

}  // namespace octet
