#include "octet/kernels/cpu/matmul/weight_memory.h"

#include <algorithm>
#include <sys/mman.h>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet::cpu {

namespace {

constexpr int64_t kHugePageBytes = int64_t{2} << 20;
/// Only written pages become resident, so an unfinished slab costs address space alone.
constexpr int64_t kSlabBytes = int64_t{256} << 20;

constexpr int64_t round_up(int64_t value, int64_t step) {
  return (value + step - 1) / step * step;
}

}  // namespace

struct WeightMemory::Slab {
  std::byte* mapping = nullptr;
  std::byte* begin = nullptr;  // first huge page
  int64_t mapped_bytes = 0;
  int64_t bytes = 0;

  explicit Slab(int64_t size) : mapped_bytes(size + kHugePageBytes), bytes(size) {
    void* address = ::mmap(
        nullptr,
        static_cast<size_t>(mapped_bytes),
        PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
        -1,
        0
    );
    if (address == MAP_FAILED) {
      throw Error(
          ErrorKind::kResourceExhausted, fmt::format("no memory for {} MiB of weights", size >> 20)
      );
    }
    mapping = static_cast<std::byte*>(address);
    const auto value = reinterpret_cast<uintptr_t>(address);
    begin = mapping +
            (round_up(static_cast<int64_t>(value), kHugePageBytes) - static_cast<int64_t>(value));
    // Advice only: without huge pages products are slower, not wrong.
    static_cast<void>(::madvise(begin, static_cast<size_t>(bytes), MADV_HUGEPAGE));
  }
  ~Slab() { ::munmap(mapping, static_cast<size_t>(mapped_bytes)); }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
};

std::shared_ptr<std::byte> WeightMemory::allocate(int64_t bytes) {
  const int64_t size = round_up(std::max<int64_t>(bytes, 1), 64);
  if (slab_ == nullptr || used_bytes_ + size > slab_->bytes) {
    slab_ = std::make_shared<Slab>(std::max(kSlabBytes, round_up(size, kHugePageBytes)));
    used_bytes_ = 0;
  }
  std::shared_ptr<std::byte> result(slab_, slab_->begin + used_bytes_);
  used_bytes_ += size;
  return result;
}

}  // namespace octet::cpu
