#include "octet/train/tensor_memory.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <sys/mman.h>
#include <vector>

#include "octet/train/tensor.h"

namespace octet::train {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kLarge = size_t{1} << 20;  // smaller blocks come from malloc
constexpr size_t kAlignment = 64;           // of a cache line and of the widest vectors

/// Before the data of a block: to whom it goes back.
struct alignas(kAlignment) Header {
  size_t block_bytes = 0;  // 0: malloc's
};
static_assert(sizeof(Header) == kAlignment);

size_t round_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/// Whole huge pages, by size.
class KeptBlocks {
 public:
  void* take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    std::vector<void*>& free = free_[bytes];
    if (free.empty()) {
      return map(bytes);
    }
    void* block = free.back();
    free.pop_back();
    return block;
  }

  void give_back(void* block, size_t bytes) {
    const std::lock_guard lock(mutex_);
    free_[bytes].push_back(block);
  }

 private:
  static void* map(size_t bytes) {
    const size_t mapped = bytes + kHugePage;
    void* all = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) {
      throw std::bad_alloc();
    }
    auto* begin = static_cast<std::byte*>(all);
    const size_t before =
        round_up(reinterpret_cast<uintptr_t>(all), kHugePage) - reinterpret_cast<uintptr_t>(all);
    if (before > 0) {
      munmap(begin, before);
    }
    if (before < kHugePage) {
      munmap(begin + before + bytes, kHugePage - before);
    }
    madvise(begin + before, bytes, MADV_HUGEPAGE);  // a wish: small pages do as well
    return begin + before;
  }

  std::mutex mutex_;
  std::map<size_t, std::vector<void*>> free_;
};

/// Never destroyed: tensors of libtorch may outlive everything else.
KeptBlocks& kept_blocks() {
  static auto* blocks = new KeptBlocks;
  return *blocks;
}

void release(void* data) {
  if (data == nullptr) {
    return;
  }
  Header* header = static_cast<Header*>(data) - 1;
  if (header->block_bytes == 0) {
    std::free(header);
  } else {
    kept_blocks().give_back(header, header->block_bytes);
  }
}

class KeptMemory : public at::Allocator {
 public:
  at::DataPtr allocate(size_t bytes) const override {
    if (bytes == 0) {
      return {nullptr, at::Device(at::DeviceType::CPU)};
    }
    const size_t whole = sizeof(Header) + bytes;
    const bool large = whole >= kLarge;
    const size_t block_bytes = round_up(whole, large ? kHugePage : kAlignment);
    void* block =
        large ? kept_blocks().take(block_bytes) : std::aligned_alloc(kAlignment, block_bytes);
    if (block == nullptr) {
      throw std::bad_alloc();
    }
    auto* header = new (block) Header{large ? block_bytes : 0};
    void* data = header + 1;
    return {data, data, &release, at::Device(at::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
};

}  // namespace

void keep_tensor_memory() {
  static KeptMemory memory;
  constexpr uint8_t kAboveTheDefault = 1;
  c10::SetAllocator(at::DeviceType::CPU, &memory, kAboveTheDefault);
}

}  // namespace octet::train
