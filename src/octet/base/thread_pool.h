// Fork-join worker pool for kernels: a fixed set of threads, the caller is thread 0. Workers spin
// for a short bounded time, then park. Not a task queue: one parallel region at a time, from one
// caller. Invariant: how work is split never influences results; kernels partition over outputs
// only.
#pragma once

#include <cstdint>
#include <memory>

#include "octet/base/function_ref.h"

namespace octet {

class ThreadPool {
 public:
  /// `threads` >= 1, the caller included. Throws Error(kResourceExhausted) where the system starts
  /// fewer.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;
  /// Whether waiting for another thread may spin: each has a CPU of its own.
  bool spins() const;

  /// Runs body(thread) once on every thread, returns when all are done. The body must not throw.
  void run(FunctionRef<void(int thread)> body);

  /// Runs body(thread) on the caller, and on every other thread that comes before the caller's
  /// body returns; whoever comes later is not waited for. So where other programs have the CPUs,
  /// the threads that run do the work, which the body takes piece by piece (shared_work.h): when it
  /// returns on one thread, no piece is left to take. Must not throw.
  void run_available(FunctionRef<void(int thread)> body);

  /// Splits [0, count) into one contiguous range a thread, each a multiple of `grain` but the last,
  /// and runs body(begin, end) for the non-empty ones, on the threads that are available.
  void for_ranges(int64_t count, int64_t grain, FunctionRef<void(int64_t begin, int64_t end)> body);

  /// Number of CPUs this process may use: the smaller of affinity mask and cgroup quota, at
  /// least 1.
  static int usable_cpus();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octet
