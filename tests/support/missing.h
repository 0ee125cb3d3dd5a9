// Tests that need what a package brings: skipped where it is missing, because the core must be
// testable without it; failed where scripts/run_tests.sh has installed everything and says so, so
// that the full run cannot pass by skipping.
#pragma once

#include <cstdlib>

#include <gtest/gtest.h>

/// Ends a test that cannot run without `what` (streamed).
#define OCTET_NEEDS(what)                                              \
  do {                                                                 \
    if (std::getenv("OCTET_TEST_COMPLETE") != nullptr) {               \
      FAIL() << what << " is missing, and OCTET_TEST_COMPLETE is set"; \
    }                                                                  \
    GTEST_SKIP() << what << " is missing (make test installs it)";     \
  } while (false)
