#include "octet/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/base/cpu_quota.h"
#include "octet/base/error.h"
#include "octet/base/shared_work.h"
#include "octet/base/spin_wait.h"

namespace octet {
namespace {

// The door to a region, one word: the region's number, whether it is closed, and how many workers
// went in. A worker goes in and counts itself in one step, so the caller that closes the door
// learns whom it has to wait for.
constexpr uint64_t kOneWorker = 1;
constexpr uint64_t kWorkersMask = 0xFFFF;
constexpr uint64_t kClosed = uint64_t{1} << 16;
constexpr uint64_t kOneRegion = uint64_t{1} << 17;

}  // namespace

struct ThreadPool::State {
  // Separate cache lines: workers wait for `generation` while others come and leave.
  alignas(64) std::atomic<uint32_t> generation{0};  // changes with each region
  alignas(64) std::atomic<uint64_t> door{kClosed};
  alignas(64) std::atomic<uint32_t> left{0};  // workers that are done with the region
  // Read by those inside alone, so the caller may set it while the door is closed; null: stop.
  alignas(64) const FunctionRef<void(int)>* body = nullptr;
  bool spin = true;
  bool running = false;  // only the caller's thread reads and writes it
  std::vector<std::thread> workers;

  /// Whoever was inside has left, and the door is closed.
  void open_region(const FunctionRef<void(int)>* new_body) {
    body = new_body;
    left.store(0, std::memory_order_relaxed);
    const uint64_t region = door.load(std::memory_order_relaxed) / kOneRegion + 1;
    door.store(region * kOneRegion, std::memory_order_release);
    generation.fetch_add(1, std::memory_order_release);
    generation.notify_all();
  }

  void wait_until_left(uint32_t workers_inside) {
    uint32_t gone = left.load(std::memory_order_acquire);
    while (gone != workers_inside) {
      gone = wait_for_change(left, gone, spin);
    }
  }

  /// Waits for the workers inside; those that come now find the door closed.
  void close_region() {
    const uint64_t before = door.fetch_or(kClosed, std::memory_order_acq_rel);
    wait_until_left(static_cast<uint32_t>(before & kWorkersMask));
  }

  /// Waits until every worker has come and left.
  void finish_region() {
    wait_until_left(static_cast<uint32_t>(workers.size()));
    door.fetch_or(kClosed, std::memory_order_relaxed);
  }

  /// The body on the caller and on whoever comes before `end` ends the region.
  void region(FunctionRef<void(int thread)> shared_body, void (State::*end)()) {
    if (workers.empty()) {
      shared_body(0);
      return;
    }
    OCTET_CHECK(!running);  // regions do not nest
    running = true;
    open_region(&shared_body);
    shared_body(0);
    (this->*end)();
    running = false;
  }

  void stop() {
    open_region(nullptr);
    for (std::thread& worker : workers) {
      worker.join();
    }
  }

  /// Goes into the region that is open unless it is `last`, the one that this worker was in before;
  /// `last` is then its number.
  bool enter(uint64_t& last) {
    uint64_t seen = door.load(std::memory_order_acquire);
    do {
      if ((seen & kClosed) != 0 || seen / kOneRegion == last) {
        return false;
      }
    } while (!door.compare_exchange_weak(
        seen, seen + kOneWorker, std::memory_order_acq_rel, std::memory_order_acquire
    ));
    last = seen / kOneRegion;
    return true;
  }

  void work(int thread) {
    uint32_t seen = 0;
    uint64_t last_region = 0;
    for (;;) {
      // The door opens before the generation changes: a worker that goes in between finds the same
      // region once more and passes by.
      seen = wait_for_change(generation, seen, spin);
      if (!enter(last_region)) {
        continue;
      }
      if (body == nullptr) {
        return;
      }
      (*body)(thread);
      left.fetch_add(1, std::memory_order_acq_rel);
      left.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  OCTET_CHECK(threads >= 1);
  // More threads than CPUs: whoever spins keeps the CPU from the thread that it waits for.
  state_->spin = threads <= usable_cpus();
  state_->workers.reserve(static_cast<size_t>(threads) - 1);
  try {
    for (int thread = 1; thread < threads; ++thread) {
      state_->workers.emplace_back([state = state_.get(), thread] { state->work(thread); });
    }
  } catch (const std::system_error& refused) {
    const int started = this->threads();
    state_->stop();
    throw Error(
        ErrorKind::kResourceExhausted,
        fmt::format(
            "the system allows this process {} of {} threads ({}); ask for fewer (-t)",
            started,
            threads,
            refused.code().message()
        )
    );
  }
}

ThreadPool::~ThreadPool() {
  state_->stop();
}

int ThreadPool::threads() const {
  return static_cast<int>(state_->workers.size()) + 1;
}

bool ThreadPool::spins() const {
  return state_->spin;
}

void ThreadPool::run(FunctionRef<void(int thread)> body) {
  state_->region(body, &State::finish_region);
}

void ThreadPool::run_available(FunctionRef<void(int thread)> body) {
  state_->region(body, &State::close_region);
}

void ThreadPool::for_ranges(
    int64_t count, int64_t grain, FunctionRef<void(int64_t begin, int64_t end)> body
) {
  OCTET_CHECK(count >= 0 && grain >= 1);
  const int64_t grains = (count + grain - 1) / grain;
  if (grains <= 1 || threads() == 1) {
    if (count > 0) {
      body(0, count);
    }
    return;
  }
  const int64_t parts = std::min<int64_t>(threads(), grains);
  SharedWork ranges(static_cast<uint32_t>(parts));
  run_available([&](int /*thread*/) {
    ranges.work([&](uint32_t part) {
      const int64_t begin = grains * part / parts * grain;
      const int64_t end = std::min(count, grains * (part + 1) / parts * grain);
      body(begin, end);
    });
  });
}

int ThreadPool::usable_cpus() {
  return usable_cpu_count();
}

}  // namespace octet
