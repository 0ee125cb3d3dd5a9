#include "octet/base/spin_wait.h"

#include <chrono>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace octet {
namespace {

// Regions of one forward pass follow each other within tens of microseconds; waking a parked thread
// costs about as much. Longer gaps (sampling, waiting for a request) are not worth a burning core.
constexpr std::chrono::microseconds kSpinTime{60};
constexpr int kPausesPerClockRead = 16;

void pause_cpu() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

uint32_t wait_for_change(const std::atomic<uint32_t>& word, uint32_t old, bool spin) {
  uint32_t now = word.load(std::memory_order_acquire);
  if (spin && now == old) {
    const auto deadline = std::chrono::steady_clock::now() + kSpinTime;
    do {
      for (int i = 0; i < kPausesPerClockRead && now == old; ++i) {
        pause_cpu();
        now = word.load(std::memory_order_acquire);
      }
    } while (now == old && std::chrono::steady_clock::now() < deadline);
  }
  while (now == old) {
    word.wait(old, std::memory_order_acquire);
    now = word.load(std::memory_order_acquire);
  }
  return now;
}

}  // namespace octet
