// Matrix products of the CPU backend: packs weights once into tiles, rounds activations as the
// weight type's numeric contract says, and runs one ISA's tile kernels on a thread pool. Not for
// anything but products. Invariant: work is split over output tiles only, so results do not depend
// on threads, rows or the product list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "octet/base/thread_pool.h"
#include "octet/kernels/cpu/kernel_table.h"
#include "octet/kernels/ops.h"

namespace octet::cpu {

class CpuMatmul {
 public:
  /// The first two must outlive this object.
  CpuMatmul(
      const KernelTable& kernels, ThreadPool& pool, ActivationMode mode = ActivationMode::kAuto
  );
  ~CpuMatmul();
  CpuMatmul(const CpuMatmul&) = delete;
  CpuMatmul& operator=(const CpuMatmul&) = delete;

  /// Packs a matrix [out, in] in parallel and drops the file's pages behind itself: the packed copy
  /// replaces them. (Rows can still be gathered from the mapping.) Throws Error(kUnsupported) when
  /// the tensor is not a matrix, its rows are not whole blocks or it lacks the input scale that its
  /// products need, Error(kResourceExhausted) when there is no memory.
  std::unique_ptr<Weight> prepare(const Checkpoint& owner, const LogicalTensor& tensor);
  /// Bytes of that packed copy. Throws as prepare() does for tensors it refuses.
  static int64_t prepared_bytes(const LogicalTensor& tensor);

  /// out = x W^T for every product; all share x [n, in], n >= 0. One fork-join.
  void matmul(ConstRows x, std::span<const Product> products);

  /// Decodes row `row` of a weight of prepare() out of its tiles into out [cols]: the values of
  /// decode_rows() on the tensor, bit for bit.
  static void unpack_row(const Weight& weight, int64_t row, float* out);

  int64_t scratch_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octet::cpu
