// Anonymous memory for packed weights, on huge pages where the system has them: streaming weights
// through 4 KiB pages reaches two thirds of the memory bandwidth. Weights lie one behind the other
// in slabs, because most matrices alone would not fill huge pages. Not for anything that shrinks:
// memory returns when every user of a slab is gone. Invariant: memory is zero when handed out, and
// resident only where it was written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "octet/base/page_memory.h"

namespace octet::cpu {

class WeightMemory {
 public:
  /// 64-byte aligned. Throws Error(kResourceExhausted). Not for concurrent calls.
  std::shared_ptr<std::byte> allocate(int64_t bytes);

 private:
  std::shared_ptr<PageMemory> slab_;
  int64_t used_bytes_ = 0;
};

}  // namespace octet::cpu
