#include "octet/base/page_memory.h"

#include <algorithm>
#include <sys/mman.h>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet {
namespace {

constexpr int64_t kHugePageBytes = int64_t{2} << 20;

}  // namespace

PageMemory::PageMemory(int64_t bytes, PageAdvice advice, std::string_view purpose)
    : mapped_bytes_(std::max<int64_t>(bytes, 1) + kHugePageBytes), bytes_(bytes) {
  void* address = ::mmap(
      nullptr,
      static_cast<size_t>(mapped_bytes_),
      PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
      -1,
      0
  );
  if (address == MAP_FAILED) {
    throw Error(
        ErrorKind::kResourceExhausted,
        fmt::format("the system refuses {} MiB of memory for {}", bytes >> 20, purpose)
    );
  }
  mapping_ = static_cast<std::byte*>(address);
  const auto offset = static_cast<int64_t>(reinterpret_cast<uintptr_t>(address) % kHugePageBytes);
  data_ = mapping_ + (offset == 0 ? 0 : kHugePageBytes - offset);
  // Advice only: with other pages access is slower, not wrong.
  static_cast<void>(::madvise(
      data_,
      static_cast<size_t>(std::max<int64_t>(bytes, 1)),
      advice == PageAdvice::kHuge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE
  ));
}

PageMemory::~PageMemory() {
  ::munmap(mapping_, static_cast<size_t>(mapped_bytes_));
}

}  // namespace octet
