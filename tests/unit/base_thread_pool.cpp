#include <atomic>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "octet/base/thread_pool.h"

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

TEST(ThreadPool, AnUnusedPoolStops) {
  const ThreadPool pool(3);
}

TEST(ThreadPool, UsesAtLeastOneCpu) {
  EXPECT_GE(ThreadPool::usable_cpus(), 1);
}

}  // namespace
}  // namespace octet
