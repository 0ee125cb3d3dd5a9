#include <gtest/gtest.h>

#include "octet/engine/shortlist.h"

namespace octet {
namespace {

TEST(TokenCounts, RanksByFrequencyThenById) {
  TokenCounts counts(10);
  counts.add(std::vector<TokenId>{7, 7, 7, 3, 3, 9, 12, -1});  // ids beyond are left out
  EXPECT_EQ(counts.total(), 6);
  EXPECT_EQ(counts.distinct(), 3);
  EXPECT_EQ(counts.shortlist(2, {}), (std::vector<TokenId>{3, 7}));
  EXPECT_EQ(counts.shortlist(5, {}), (std::vector<TokenId>{0, 1, 3, 7, 9}));
  EXPECT_EQ(counts.shortlist(100, {}).size(), 10U);
}

TEST(TokenCounts, KeepsWhatMustBeThere) {
  TokenCounts counts(10);
  counts.add(std::vector<TokenId>{7, 7, 3});
  EXPECT_EQ(counts.shortlist(2, std::vector<TokenId>{5}), (std::vector<TokenId>{5, 7}));
}

TEST(TokenCounts, SaysWhatIsCovered) {
  TokenCounts counts(10);
  EXPECT_EQ(counts.covered({}), 1.0);
  counts.add(std::vector<TokenId>{7, 7, 7, 3});
  EXPECT_EQ(counts.covered(std::vector<TokenId>{7}), 0.75);
  EXPECT_EQ(counts.covered({}), 0.0);
}

}  // namespace
}  // namespace octet
