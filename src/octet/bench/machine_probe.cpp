#include "octet/bench/machine_probe.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <sys/mman.h>

#include "octet/base/error.h"

namespace octet {
namespace {

constexpr std::array<int, 4> kStreams = {1, 2, 4, 8};
constexpr int64_t kProbeUnit =
    int64_t{512} * 8;  // bytes: a multiple of 512 for every number of streams
constexpr int64_t kPeakOperations = int64_t{1} << 31;  // a thread: some milliseconds

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

MachineProbe::MachineProbe(const cpu::ProbeKernels& kernels, ThreadPool& pool, int64_t buffer_bytes)
    : kernels_(kernels),
      pool_(pool),
      thread_bytes_(buffer_bytes / pool.threads() / kProbeUnit * kProbeUnit) {
  const auto bytes = static_cast<size_t>(thread_bytes_ * pool.threads());
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(ErrorKind::kResourceExhausted, "no memory for the bandwidth probe's buffer");
  }
  madvise(memory, bytes, MADV_HUGEPAGE);
  buffer_ = static_cast<std::byte*>(memory);
  pool_.run([this](int thread) {  // first touch by the thread that will read it
    std::memset(buffer_ + thread * thread_bytes_, thread + 1, static_cast<size_t>(thread_bytes_));
  });
}

MachineProbe::~MachineProbe() {
  munmap(buffer_, static_cast<size_t>(thread_bytes_ * pool_.threads()));
}

double MachineProbe::read_bytes_per_s(int streams) {
  std::atomic<uint64_t> sink{0};
  const auto begin = std::chrono::steady_clock::now();
  pool_.run([&](int thread) {
    sink += kernels_.read(buffer_ + thread * thread_bytes_, thread_bytes_, streams);
  });
  return static_cast<double>(thread_bytes_ * pool_.threads()) / seconds_since(begin);
}

double MachineProbe::operations_per_s(int64_t (*probe)(int64_t) noexcept) {
  std::atomic<int64_t> operations{0};
  const auto begin = std::chrono::steady_clock::now();
  pool_.run([&](int /*thread*/) { operations += probe(kPeakOperations); });
  return static_cast<double>(operations.load()) / seconds_since(begin);
}

MachineLimits MachineProbe::measure() {
  MachineLimits limits;
  for (const int streams : kStreams) {
    const double rate = read_bytes_per_s(streams);
    if (rate > limits.read_bytes_per_s) {
      limits.read_bytes_per_s = rate;
      limits.read_streams = streams;
    }
  }
  limits.int8_operations_per_s = operations_per_s(kernels_.int8_operations);
  if (kernels_.bf16_operations != nullptr) {
    limits.bf16_operations_per_s = operations_per_s(kernels_.bf16_operations);
  }
  limits.float_operations_per_s = operations_per_s(kernels_.float_operations);
  return limits;
}

}  // namespace octet
