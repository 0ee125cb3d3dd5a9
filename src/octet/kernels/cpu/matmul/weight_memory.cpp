#include "octet/kernels/cpu/matmul/weight_memory.h"

#include <algorithm>

namespace octet::cpu {

namespace {

constexpr int64_t kHugePageBytes = int64_t{2} << 20;
/// Only written pages become resident, so an unfinished slab costs address space alone.
constexpr int64_t kSlabBytes = int64_t{256} << 20;

constexpr int64_t round_up(int64_t value, int64_t step) {
  return (value + step - 1) / step * step;
}

}  // namespace

std::shared_ptr<std::byte> WeightMemory::allocate(int64_t bytes) {
  const int64_t size = round_up(std::max<int64_t>(bytes, 1), 64);
  if (slab_ == nullptr || used_bytes_ + size > slab_->bytes()) {
    slab_ = std::make_shared<PageMemory>(
        std::max(kSlabBytes, round_up(size, kHugePageBytes)), PageAdvice::kHuge, "weights"
    );
    used_bytes_ = 0;
  }
  std::shared_ptr<std::byte> result(slab_, slab_->data() + used_bytes_);
  used_bytes_ += size;
  return result;
}

}  // namespace octet::cpu
