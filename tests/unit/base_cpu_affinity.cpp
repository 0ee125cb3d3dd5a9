// Lists of CPUs, and what running on some of them does to the calling thread.
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "octet/base/cpu_affinity.h"
#include "octet/base/cpu_quota.h"
#include "octet/base/error.h"

namespace octet {
namespace {

using Cpus = std::vector<int>;

TEST(CpuList, NumbersAndRangesInAnyOrder) {
  EXPECT_EQ(parse_cpu_list("0"), Cpus({0}));
  EXPECT_EQ(parse_cpu_list("4-6,1,5"), Cpus({1, 4, 5, 6}));
  EXPECT_EQ(parse_cpu_list("3-3,1023"), Cpus({3, 1023}));
}

TEST(CpuList, WhatIsNoneIsRefused) {
  for (const char* text : {"", ",", "1,", "a", "-1", "1-", "3-2", "1024", "0-1024", "1 2", "0x1"}) {
    EXPECT_THROW(parse_cpu_list(text), Error) << text;
  }
}

TEST(CpuAffinity, TheThreadAndWhatItStartsStayOnTheListedCpus) {
  std::thread([] {
    const Cpus all = allowed_cpus();
    ASSERT_FALSE(all.empty());
    run_on_cpus({all.back()});
    EXPECT_EQ(allowed_cpus(), Cpus({all.back()}));
    EXPECT_EQ(usable_cpu_count(), 1);
    std::thread([&] { EXPECT_EQ(allowed_cpus(), Cpus({all.back()})); }).join();
  }).join();
}

TEST(CpuAffinity, AListThatCannotBeHadChangesNothing) {
  const Cpus all = allowed_cpus();
  EXPECT_THROW(run_on_cpus({all.front(), 1023}), Error);
  EXPECT_THROW(run_on_cpus({}), Error);
  EXPECT_EQ(allowed_cpus(), all);
}

}  // namespace
}  // namespace octet
