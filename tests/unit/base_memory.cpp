// Memory from the operating system and what it says about the process.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/base/page_memory.h"
#include "octet/base/process_memory.h"
#include "support/sanitizers.h"

namespace octet {
namespace {

TEST(PageMemory, IsZeroAndStartsOnAHugePage) {
  for (const PageAdvice advice : {PageAdvice::kHuge, PageAdvice::kSmall}) {
    const PageMemory memory(5'000'000, advice, "a test");
    EXPECT_EQ(memory.bytes(), 5'000'000);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % (2U << 20), 0U);
    EXPECT_EQ(std::count(memory.data(), memory.data() + memory.bytes(), std::byte{0}), 5'000'000);
  }
}

/// Of this memory alone: an emulator keeps tables of its own for what a program maps.
int64_t resident_bytes_of(const PageMemory& memory) {
  const auto page = static_cast<int64_t>(sysconf(_SC_PAGESIZE));
  constexpr int64_t kStride = int64_t{1} << 30;
  int64_t resident = 0;
  std::vector<unsigned char> pages(static_cast<size_t>(kStride / page));
  for (int64_t begin = 0; begin < memory.bytes(); begin += kStride) {
    const int64_t bytes = std::min(kStride, memory.bytes() - begin);
    EXPECT_EQ(mincore(memory.data() + begin, static_cast<size_t>(bytes), pages.data()), 0);
    const auto count = static_cast<ptrdiff_t>((bytes + page - 1) / page);
    resident += page * std::count_if(pages.begin(), pages.begin() + count, [](unsigned char state) {
                  return (state & 1) != 0;
                });
  }
  return resident;
}

TEST(PageMemory, CostsNothingUntilItIsWritten) {
  constexpr int64_t kBytes = int64_t{1} << 36;
  const PageMemory memory(kBytes, PageAdvice::kSmall, "a test");
  EXPECT_EQ(resident_bytes_of(memory), 0);
  std::memset(memory.data() + kBytes / 2, 1, 100);
  EXPECT_GE(resident_bytes_of(memory), 100);
  EXPECT_LT(resident_bytes_of(memory), int64_t{1} << 20);
}

TEST(PageMemory, WhatTheSystemRefusesIsAnErrorThatSaysWhatFor) {
  try {
    const PageMemory memory(int64_t{1} << 55, PageAdvice::kHuge, "a test");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kResourceExhausted);
    EXPECT_THAT(error.what(), testing::HasSubstr("for a test"));
  }
}

TEST(ProcessMemory, FiguresFollowWhatIsTouched) {
  constexpr int64_t kBytes = int64_t{40} << 20;
  const int64_t anonymous = resident_anonymous_bytes();
  ASSERT_GT(anonymous, 0);
  ASSERT_GE(resident_bytes(), anonymous);
  {
    const PageMemory memory(kBytes, PageAdvice::kSmall, "a test");
    std::memset(memory.data(), 1, kBytes);
    EXPECT_GE(resident_anonymous_bytes(), anonymous + kBytes * 9 / 10);
  }
  EXPECT_LT(resident_anonymous_bytes(), anonymous + kBytes / 2);
  EXPECT_GE(peak_resident_bytes(), anonymous + kBytes * 9 / 10);
}

TEST(ProcessMemory, LockingLocksOrSaysHowToAllowIt) {
  if (test::kKeepsShadowMemory) {
    GTEST_SKIP() << "AddressSanitizer makes mlock do nothing";
  }
  ASSERT_EQ(locked_bytes(), 0);
  try {
    lock_process_memory();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kResourceExhausted);
    EXPECT_THAT(error.what(), testing::HasSubstr("ulimit -l"));
    return;
  }
  EXPECT_GT(locked_bytes(), 0);
  munlockall();
  EXPECT_EQ(locked_bytes(), 0);
}

}  // namespace
}  // namespace octet
