#include <vector>

#include <gtest/gtest.h>

#include "octet/speculation/license.h"

namespace octet {
namespace {

const std::vector<TokenId> kEnds = {90, 91, 92};
const std::vector<TokenId> kBlock = {1, 2, 3, 4, 5, 6, 7, 8};

/// Stops at the n-th token it is shown; remembers them all.
class StopAt : public StopWatch {
 public:
  explicit StopAt(size_t stop) : stop_(stop) {}
  bool push(TokenId token, bool end) override {
    shown.push_back(token);
    ends.push_back(end);
    return shown.size() == stop_;
  }
  std::vector<TokenId> shown;
  std::vector<bool> ends;

 private:
  size_t stop_;
};

Limits wide() {
  return {kEnds, 1000, 1000, nullptr};
}

TEST(License, PublishesAllWithoutAReasonToStop) {
  StopAt watch(100);
  const License result = license(kBlock, wide(), &watch);
  EXPECT_EQ(result.published, 8);
  EXPECT_EQ(result.finish, FinishReason::kNone);
  EXPECT_EQ(watch.shown, kBlock);
}

TEST(License, EveryEndTokenStopsAtEveryOffset) {
  for (const TokenId end : kEnds) {
    for (size_t at = 0; at < kBlock.size(); ++at) {
      std::vector<TokenId> block = kBlock;
      block[at] = end;
      StopAt watch(100);
      const License result = license(block, wide(), &watch);
      EXPECT_EQ(result.published, static_cast<int>(at) + 1);
      EXPECT_EQ(result.finish, FinishReason::kStopToken);
      EXPECT_EQ(watch.shown.size(), at + 1);
      EXPECT_TRUE(watch.ends.back());
    }
  }
}

TEST(License, StopStringsAndLimitsCutAtEveryOffset) {
  for (int at = 1; at <= 8; ++at) {
    StopAt watch(static_cast<size_t>(at));
    EXPECT_EQ(license(kBlock, wide(), &watch).published, at);
    Limits few = wide();
    few.remaining_tokens = at;
    const License length = license(kBlock, few, nullptr);
    EXPECT_EQ(length.published, at);
    EXPECT_EQ(length.finish, FinishReason::kLength);
    Limits narrow = wide();
    narrow.remaining_context = at;
    const License context = license(kBlock, narrow, nullptr);
    EXPECT_EQ(context.published, at);
    EXPECT_EQ(context.finish, FinishReason::kContext);
  }
}

TEST(License, PrecedenceAtOneToken) {
  const std::vector<TokenId> block = {1, 90};
  Limits limits = {kEnds, 2, 2, nullptr};
  StopAt watch(2);
  EXPECT_EQ(license(block, limits, &watch).finish, FinishReason::kStopToken);
  limits.stop_tokens = {};
  StopAt again(2);
  EXPECT_EQ(license(block, limits, &again).finish, FinishReason::kStopString);
  EXPECT_EQ(license(block, limits, nullptr).finish, FinishReason::kLength);
  limits.remaining_tokens = 3;
  EXPECT_EQ(license(block, limits, nullptr).finish, FinishReason::kContext);
}

TEST(License, CancellationPublishesNothing) {
  const std::atomic<bool> cancelled = true;
  Limits limits = wide();
  limits.cancelled = &cancelled;
  StopAt watch(1);
  const License result = license(kBlock, limits, &watch);
  EXPECT_EQ(result.published, 0);
  EXPECT_EQ(result.finish, FinishReason::kCancelled);
  EXPECT_TRUE(watch.shown.empty());
}

}  // namespace
}  // namespace octet
