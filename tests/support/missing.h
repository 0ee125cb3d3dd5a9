// Tests that need what a package brings: skipped where it is missing, because the core must be
// testable without it; failed where scripts/run_tests.sh has installed everything and says so, so
// that the full run cannot pass by skipping.
#pragma once

#include <cstdlib>

#include <gtest/gtest.h>

namespace octet::test {

inline bool nothing_may_be_missing() {
  return std::getenv("OCTET_TEST_COMPLETE") != nullptr;  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace octet::test

/// Ends a test that cannot run without `what` (streamed).
#define OCTET_NEEDS(what)                                              \
  do {                                                                 \
    if (octet::test::nothing_may_be_missing()) {                       \
      FAIL() << what << " is missing, and OCTET_TEST_COMPLETE is set"; \
    }                                                                  \
    GTEST_SKIP() << what << " is missing (make test installs it)";     \
  } while (false)
