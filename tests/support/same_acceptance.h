// Two countings of acceptance that must be one.
#pragma once

#include <gtest/gtest.h>

#include "octet/engine/acceptance_statistics.h"

namespace octet::test {

inline void expect_same(const AcceptanceStatistics& found, const AcceptanceStatistics& expected) {
  EXPECT_EQ(found.steps, expected.steps);
  EXPECT_EQ(found.published, expected.published);
  EXPECT_EQ(found.drafted, expected.drafted);
  EXPECT_EQ(found.accepted, expected.accepted);
  EXPECT_EQ(found.judged_rows, expected.judged_rows);
  EXPECT_EQ(found.accepted_rows, expected.accepted_rows);
  EXPECT_EQ(found.histogram, expected.histogram);
}

}  // namespace octet::test
