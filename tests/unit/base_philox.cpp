#include <set>

#include <gtest/gtest.h>

#include "octet/base/philox.h"

namespace octet {
namespace {

// The known answers published with the generator (Random123, kat_vectors, philox4x32 10).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(
      philox4x32_10({0, 0, 0, 0}, {0, 0}),
      (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8})
  );
  EXPECT_EQ(
      philox4x32_10({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}),
      (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd})
  );
  EXPECT_EQ(
      philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1})
  );
}

TEST(Philox, EveryPartOfTheKeyMatters) {
  const std::set<uint64_t> words = {
      philox_words(1, 2, 3, 4)[0],
      philox_words(1, 2, 3, 4)[1],
      philox_words(2, 2, 3, 4)[0],
      philox_words(1ULL << 32U, 2, 3, 4)[0],
      philox_words(1, 3, 3, 4)[0],
      philox_words(1, int64_t{2} << 32, 3, 4)[0],
      philox_words(1, 2, 4, 4)[0],
      philox_words(1, 2, 3, 5)[0]};
  EXPECT_EQ(words.size(), 8U);
}

TEST(Philox, UnitIntervalIsOpen) {
  EXPECT_GT(unit_interval(0), 0.0);
  EXPECT_LT(unit_interval(~uint64_t{0}), 1.0);
}

}  // namespace
}  // namespace octet
