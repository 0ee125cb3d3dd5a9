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
#include "octet/base/spin_wait.h"

namespace octet {

struct ThreadPool::State {
  // Separate cache lines: workers poll `generation` while others count down `pending`.
  alignas(64) std::atomic<uint32_t> generation{0};
  alignas(64) std::atomic<uint32_t> pending{0};
  alignas(64
  ) const FunctionRef<void(int)>* body = nullptr;  // published by `generation`; null: stop
  bool spin = true;
  bool running = false;  // only the caller's thread reads and writes it
  std::vector<std::thread> workers;

  void start_region(const FunctionRef<void(int)>* new_body) {
    body = new_body;
    pending.store(static_cast<uint32_t>(workers.size()), std::memory_order_relaxed);
    generation.fetch_add(1, std::memory_order_release);
    generation.notify_all();
  }

  void stop() {
    start_region(nullptr);
    for (std::thread& worker : workers) {
      worker.join();
    }
  }

  void work(int thread) {
    uint32_t seen = 0;
    for (;;) {
      seen = wait_for_change(generation, seen, spin);
      if (body == nullptr) {
        return;
      }
      (*body)(thread);
      if (pending.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        pending.notify_one();
      }
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
  if (state_->workers.empty()) {
    body(0);
    return;
  }
  OCTET_CHECK(!state_->running);  // regions do not nest
  state_->running = true;
  state_->start_region(&body);
  body(0);
  uint32_t left = state_->pending.load(std::memory_order_acquire);
  while (left != 0) {
    left = wait_for_change(state_->pending, left, state_->spin);
  }
  state_->running = false;
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
  const int64_t parts = threads();
  run([&](int thread) {
    const int64_t begin = grains * thread / parts * grain;
    const int64_t end = std::min(count, grains * (thread + 1) / parts * grain);
    if (begin < end) {
      body(begin, end);
    }
  });
}

int ThreadPool::usable_cpus() {
  return usable_cpu_count();
}

}  // namespace octet
