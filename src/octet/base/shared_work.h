// Pieces of work of one parallel region (thread_pool.h), taken one at a time, so that a thread that
// starts late or is held up leaves more to the others instead of making them wait. Not for results
// that depend on who does a piece.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "octet/base/check.h"
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

/// Work whose neighbouring pieces one thread does best, because it streams them from memory: every
/// thread has a contiguous range of the pieces and takes them in order, then helps others with
/// theirs. Kept by a caller of many regions to spare allocations.
class SharedStreams {
 public:
  explicit SharedStreams(int threads) : streams_(static_cast<size_t>(threads)) {}

  /// Before a region: pieces 0 .. pieces - 1 are to be done.
  void begin(int64_t pieces) {
    const auto streams = static_cast<int64_t>(streams_.size());
    for (int64_t i = 0; i < streams; ++i) {
      Stream& stream = streams_[static_cast<size_t>(i)];
      stream.next.store(pieces * i / streams, std::memory_order_relaxed);
      stream.end = pieces * (i + 1) / streams;
    }
  }

  /// The piece that `thread` begins with, if no other thread takes it before.
  int64_t first(int thread) const {
    return streams_[static_cast<size_t>(thread)].next.load(std::memory_order_relaxed);
  }

  /// On every thread of the region: body(piece) for pieces that no other thread has taken; returns
  /// when none is left to take.
  template <typename Body>
  void work(int thread, Body body) {
    OCTET_CHECK(thread >= 0 && static_cast<size_t>(thread) < streams_.size());
    for (size_t i = 0; i < streams_.size(); ++i) {
      Stream& stream = streams_[(static_cast<size_t>(thread) + i) % streams_.size()];
      for (;;) {
        const int64_t piece = stream.next.fetch_add(1, std::memory_order_relaxed);
        if (piece >= stream.end) {
          break;
        }
        body(piece);
      }
    }
  }

 private:
  struct alignas(64) Stream {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };
  std::vector<Stream> streams_;
};

}  // namespace octet
