#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/base/shared_work.h"
#include "octet/base/thread_pool.h"
#include "support/error_message.h"

namespace octet {
namespace {

TEST(ThreadPool, RunsTheBodyOnceOnEveryThread) {
  for (int threads = 1; threads <= 8; ++threads) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    std::vector<int> calls(static_cast<size_t>(threads), 0);
    for (int round = 1; round <= 50; ++round) {
      pool.run([&](int thread) { ++calls[static_cast<size_t>(thread)]; });
      EXPECT_EQ(calls, std::vector<int>(static_cast<size_t>(threads), round));
    }
  }
}

TEST(ThreadPool, WhatWorkersWroteIsVisibleAfterTheRegion) {
  ThreadPool pool(4);
  std::vector<int64_t> values(
      4096, 0
  );  // plain memory: a missing barrier is a data race under TSan
  for (int64_t round = 1; round <= 200; ++round) {
    pool.for_ranges(4096, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        values[static_cast<size_t>(i)] += i;
      }
    });
    pool.for_ranges(4096, 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto other = static_cast<size_t>(4095 - i);
        EXPECT_GE(values[other], 0);
      }
    });
    EXPECT_EQ(values[4095], round * 4095);
  }
}

TEST(ThreadPool, RangesCoverEachItemOnceInWholeGrains) {
  for (int threads = 1; threads <= 5; ++threads) {
    ThreadPool pool(threads);
    for (const int64_t count : {0, 1, 2, 7, 16, 17, 100, 1000}) {
      for (const int64_t grain : {1, 3, 16, 2000}) {
        std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
        pool.for_ranges(count, grain, [&](int64_t begin, int64_t end) {
          EXPECT_LT(begin, end);
          EXPECT_EQ(begin % grain, 0);
          EXPECT_TRUE(end % grain == 0 || end == count);
          for (int64_t i = begin; i < end; ++i) {
            ++seen[static_cast<size_t>(i)];
          }
        });
        for (const std::atomic<int>& times : seen) {
          EXPECT_EQ(times.load(), 1);
        }
      }
    }
  }
}

TEST(ThreadPool, ManyMoreThreadsThanCpusStillFinish) {
  ThreadPool pool(ThreadPool::usable_cpus() * 8 + 1);
  std::atomic<int64_t> calls{0};
  for (int round = 0; round < 100; ++round) {
    pool.run([&](int) { calls.fetch_add(1, std::memory_order_relaxed); });
  }
  EXPECT_EQ(calls.load(), int64_t{100} * pool.threads());
}

std::atomic<bool> g_hold = false;
std::atomic<int> g_held = 0;

void hold_this_thread(int /*signal*/) {
  ++g_held;
  while (g_hold) {
    sched_yield();
  }
  --g_held;
}

/// Keeps a pool's workers from running, as other programs on their CPUs would, as long as it lives.
class HeldWorkers {
 public:
  explicit HeldWorkers(ThreadPool& pool) {
    std::vector<pthread_t> workers(static_cast<size_t>(pool.threads()));
    pool.run([&](int thread) { workers[static_cast<size_t>(thread)] = pthread_self(); });
    g_hold = true;
    std::signal(SIGUSR1, hold_this_thread);
    for (size_t thread = 1; thread < workers.size(); ++thread) {
      pthread_kill(workers[thread], SIGUSR1);
    }
    while (g_held < pool.threads() - 1) {
      sched_yield();
    }
  }
  ~HeldWorkers() {
    g_hold = false;
    while (g_held > 0) {
      sched_yield();
    }
    std::signal(SIGUSR1, SIG_DFL);
  }
  HeldWorkers(const HeldWorkers&) = delete;
  HeldWorkers& operator=(const HeldWorkers&) = delete;
};

// Would not return where a region waited for every worker.
TEST(ThreadPool, WorkersThatComeTooLateAreNotWaitedFor) {
  ThreadPool pool(3);
  std::vector<int> done(100, 0);
  {
    const HeldWorkers held(pool);
    for (int round = 1; round <= 20; ++round) {
      SharedWork work(100);
      pool.run_available([&](int thread) {
        EXPECT_EQ(thread, 0);
        work.work([&](uint32_t piece) { ++done[piece]; });
      });
      EXPECT_EQ(done, std::vector<int>(100, round));
      pool.for_ranges(100, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          EXPECT_EQ(done[static_cast<size_t>(i)], round);
        }
      });
    }
  }
  // They wake to regions that are over, and come to the next one.
  std::vector<int> calls(3, 0);
  pool.run([&](int thread) { ++calls[static_cast<size_t>(thread)]; });
  EXPECT_EQ(calls, std::vector<int>(3, 1));
}

TEST(ThreadPool, RegionsOfBothKindsInAnyOrder) {
  ThreadPool pool(4);
  std::vector<int> done(16, 0);  // plain memory, for TSan
  std::vector<int> calls(4, 0);
  uint32_t state = 1;
  int shared = 0;
  int whole = 0;
  for (int round = 0; round < 4000; ++round) {
    state = state * 1664525U + 1013904223U;
    if ((state >> 16) % 3 == 0) {
      pool.run([&](int thread) { ++calls[static_cast<size_t>(thread)]; });
      ++whole;
    } else {
      SharedWork work(16);
      pool.run_available([&](int) { work.work([&](uint32_t piece) { ++done[piece]; }); });
      ++shared;
    }
    ASSERT_EQ(done, std::vector<int>(16, shared));
    ASSERT_EQ(calls, std::vector<int>(4, whole));
  }
}

TEST(ThreadPool, AnUnusedPoolStops) {
  const ThreadPool pool(3);
}

TEST(ThreadPool, UsesAtLeastOneCpu) {
  EXPECT_GE(ThreadPool::usable_cpus(), 1);
}

/// For a process of its own: the system starts a few threads more, and no others. Ends with 0 when
/// the pool says so.
[[noreturn]] void ask_for_too_many_threads() {
  if (geteuid() == 0) {  // who has no limits
    constexpr uid_t kNobody = 65534;
    if (setresuid(kNobody, kNobody, kNobody) != 0) {
      _exit(2);
    }
  }
  const rlimit limit = {4, 4};
  if (setrlimit(RLIMIT_NPROC, &limit) != 0) {
    _exit(3);
  }
  const std::string message = test::error_message([] { ThreadPool pool(64); });
  const bool told = message.find("of 64 threads") != std::string::npos &&
                    message.find("ask for fewer (-t)") != std::string::npos;
  _exit(told ? 0 : 1);
}

TEST(ThreadPool, SaysSoWhereTheSystemStartsFewerThreads) {
  EXPECT_EXIT(ask_for_too_many_threads(), testing::ExitedWithCode(0), "");
}

double cpu_ms_of_this_thread() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

TEST(SharedWork, EachPieceIsDoneOnceAndVisibleAfterWaiting) {
  ThreadPool pool(4);
  for (const uint32_t pieces : {0U, 1U, 3U, 100U}) {
    std::vector<int> done(pieces, 0);  // plain memory, for TSan
    SharedWork work(pieces);
    pool.run([&](int) {
      work.work([&](uint32_t piece) { ++done[piece]; });
      work.wait(pool.spins());
      EXPECT_EQ(done, std::vector<int>(pieces, 1));
    });
  }
}

TEST(SharedStreams, EachPieceIsDoneOnceInEveryRegion) {
  ThreadPool pool(4);
  SharedStreams work(pool.threads());
  for (const int64_t pieces : {0, 1, 3, 4, 100}) {
    std::vector<int> done(static_cast<size_t>(pieces), 0);  // plain memory, for TSan
    for (int round = 1; round <= 50; ++round) {
      work.begin(pieces);
      pool.run_available([&](int thread) {
        work.work(thread, [&](int64_t piece) { ++done[static_cast<size_t>(piece)]; });
      });
      EXPECT_EQ(done, std::vector<int>(static_cast<size_t>(pieces), round));
    }
  }
}

TEST(SharedStreams, AThreadTakesItsOwnRangeInOrderAndThenThatOfOthers) {
  SharedStreams work(3);
  work.begin(10);
  std::vector<int64_t> order;
  work.work(1, [&](int64_t piece) { order.push_back(piece); });
  EXPECT_EQ(order, (std::vector<int64_t>{3, 4, 5, 6, 7, 8, 9, 0, 1, 2}));
  work.work(2, [&](int64_t) { ADD_FAILURE() << "nothing is left"; });
}

// On a busy machine the thread that is waited for may need this very CPU.
TEST(SharedWork, WhoWaitsLongSleeps) {
  constexpr std::chrono::milliseconds kLong(200);
  ThreadPool pool(2);
  SharedWork work(2);
  std::atomic<int> begun = 0;
  std::array<double, 2> waited_cpu_ms = {};
  pool.run([&](int thread) {
    work.work([&](uint32_t piece) {
      ++begun;
      while (begun < 2) {  // one piece each
        std::this_thread::yield();
      }
      if (piece == 0) {
        std::this_thread::sleep_for(kLong);
      }
    });
    const double before = cpu_ms_of_this_thread();
    work.wait(true);
    waited_cpu_ms[static_cast<size_t>(thread)] = cpu_ms_of_this_thread() - before;
  });
  EXPECT_LT(waited_cpu_ms[0] + waited_cpu_ms[1], 0.25 * static_cast<double>(kLong.count()));
}

}  // namespace
}  // namespace octet
