// Pieces of work of one parallel region (thread_pool.h), taken one at a time, so that a thread that
// starts late or is held up leaves more to the others instead of making them wait. Not for results
// that depend on who does a piece.
#pragma once

#include <atomic>
#include <cstdint>

#include "octet/base/spin_wait.h"

namespace octet {

class SharedWork {
 public:
  explicit SharedWork(uint32_t pieces) : pieces_(pieces) {}

  /// On every thread of the region: body(piece) for each one that no other thread has taken.
  template <typename Body>
  void work(Body body) {
    for (;;) {
      const uint32_t piece = next_.fetch_add(1, std::memory_order_relaxed);
      if (piece >= pieces_) {
        return;
      }
      body(piece);
      if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == pieces_) {
        done_.notify_all();
      }
    }
  }

  /// Returns when the pieces that other threads are at are done too; what they wrote is visible.
  /// `spin`: as of wait_for_change.
  void wait(bool spin) const {
    uint32_t done = done_.load(std::memory_order_acquire);
    while (done < pieces_) {
      done = wait_for_change(done_, done, spin);
    }
  }

 private:
  uint32_t pieces_;
  alignas(64) std::atomic<uint32_t> next_{0};
  alignas(64) std::atomic<uint32_t> done_{0};
};

}  // namespace octet
