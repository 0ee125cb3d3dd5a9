// What this machine can do at the moment: read bandwidth and arithmetic peaks, measured with the
// thread count of the run. Denominators for every ratio of `octet bench`; single absolute values
// drift on shared machines, so the bench measures them again in every round.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "octet/base/thread_pool.h"
#include "octet/kernels/cpu/probe_kernels.h"

namespace octet {

struct MachineLimits {
  double read_bytes_per_s = 0.0;  // the best of several access patterns
  int read_streams = 0;           // streams a thread of that pattern
  double int8_operations_per_s = 0.0;
  double bf16_operations_per_s = 0.0;  // 0: this CPU has no bfloat16 products
  double float_operations_per_s = 0.0;
};

class MachineProbe {
 public:
  static constexpr int64_t kBufferBytes = int64_t{512} << 20;

  /// `pool` must outlive the probe. Allocates `buffer_bytes` (rounded; far larger than the caches)
  /// once.
  MachineProbe(
      const cpu::ProbeKernels& kernels, ThreadPool& pool, int64_t buffer_bytes = kBufferBytes
  );
  ~MachineProbe();
  MachineProbe(const MachineProbe&) = delete;
  MachineProbe& operator=(const MachineProbe&) = delete;

  int64_t buffer_bytes() const { return thread_bytes_ * pool_.threads(); }

  /// About 100 ms of work.
  MachineLimits measure();

 private:
  double read_bytes_per_s(int streams);
  double operations_per_s(int64_t (*probe)(int64_t) noexcept);

  const cpu::ProbeKernels& kernels_;
  ThreadPool& pool_;
  std::byte* buffer_ = nullptr;
  int64_t thread_bytes_ = 0;
};

}  // namespace octet
