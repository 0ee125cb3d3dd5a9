// Which rows run how deep, in which order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/models/gemma4/row_plan.h"

namespace octet::test {
namespace {

using testing::ElementsAre;

class FixedLength final : public SequenceCache {
 public:
  explicit FixedLength(int64_t length) : length_(length) {}
  int64_t length() const override { return length_; }
  int64_t capacity() const override { return 1000; }
  int64_t bytes() const override { return 0; }
  int64_t bytes_at(int64_t /*positions*/) const override { return 0; }
  void truncate(int64_t length) override { length_ = length; }
  void copy_prefix(const SequenceCache& /*from*/, int64_t length) override { length_ = length; }

 private:
  int64_t length_;
};

DepthRule rule() {
  DepthRule out;
  out.layers = 9;
  out.feature_layers = 7;
  out.last_kv_layer = 4;
  out.window = 3;
  return out;
}

TEST(RowPlan, RowsAreOrderedByDepthAndResultsByTheBatch) {
  FixedLength a(10);
  FixedLength b(0);
  const std::vector<TokenId> a_tokens = {100, 101, 102, 103, 104};
  const std::vector<TokenId> b_tokens = {200, 201};
  const SequenceRows batch[] = {{&a, a_tokens, 1, 3}, {&b, b_tokens, 2, 1}};
  const RowPlan plan = plan_rows(batch, rule());
  EXPECT_THAT(plan.tokens, ElementsAre(104, 200, 201, 102, 103, 100, 101));
  EXPECT_THAT(plan.positions, ElementsAre(14, 0, 1, 12, 13, 10, 11));
  EXPECT_THAT(plan.logits_from, ElementsAre(0, 1, 2));
  EXPECT_THAT(plan.features_from, ElementsAre(3, 4, 0, 2));
  EXPECT_EQ(plan.rows_through(3), 7);
  EXPECT_EQ(plan.rows_through(4), 5);
  EXPECT_EQ(plan.rows_through(6), 5);
  EXPECT_EQ(plan.rows_through(7), 3);
  EXPECT_EQ(plan.rows_through(8), 3);
}

TEST(RowPlan, KeysOfFullAndSlidingLayers) {
  FixedLength cache(4);
  const std::vector<TokenId> tokens = {7, 8};
  const SequenceRows rows{&cache, tokens, 2, 0};
  const RowPlan plan = plan_rows({&rows, 1}, rule());
  EXPECT_EQ(plan.full_keys[1].begin, 0);
  EXPECT_EQ(plan.full_keys[1].end, 6);
  EXPECT_EQ(plan.sliding_keys[0].begin, 2);
  EXPECT_EQ(plan.sliding_keys[0].end, 5);
}

TEST(RowPlan, NothingAskedForStopsAtTheLastKeysAndValues) {
  FixedLength cache(0);
  const std::vector<TokenId> tokens = {7, 8};
  const SequenceRows rows{&cache, tokens, 0, 0};
  const RowPlan plan = plan_rows({&rows, 1}, rule());
  EXPECT_EQ(plan.rows_through(3), 2);
  EXPECT_EQ(plan.rows_through(4), 0);
  EXPECT_TRUE(plan.logits_from.empty());
}

}  // namespace
}  // namespace octet::test
