// Who gets in and who is told what: the bound of the queue, the owner's own requests, and what is
// reported of replies that never started. A scripted target makes steps slow, so that the order of
// events is known.

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/engine/engine.h"
#include "octet/speculation/drafters/no_drafter.h"
#include "support/scripted_target.h"
#include "support/shipped_tokenizer.h"

namespace octet {
namespace {

constexpr auto kStep = std::chrono::milliseconds(3);

test::ScriptedTarget slow_target() {
  return {
      test::shipped_tokenizer()->vocabulary_size(),
      [](std::span<const TokenId> /*prefix*/, std::span<float> logits) {
        std::this_thread::sleep_for(kStep);
        std::ranges::fill(logits, 0.0F);
        logits[300] = 1.0F;
      }};
}

EngineRequest request_of(int64_t max_tokens) {
  EngineRequest request;
  request.generate.prompt = {2, 301, 302, 303};
  request.generate.max_tokens = max_tokens;
  request.generate.stop_tokens = std::vector<TokenId>{};
  return request;
}

ReplyFinished finished_of(ReplyStream& stream) {
  for (;;) {
    ReplyStreamEvent event = stream.next();
    if (auto* finished = std::get_if<ReplyFinished>(&event)) {
      return std::move(*finished);
    }
    if (auto* failed = std::get_if<ReplyFailed>(&event)) {
      ADD_FAILURE() << failed->error.what();
      return {};
    }
  }
}

class Counting : public EngineObserver {
 public:
  void on_step(const EngineStep& step) override { tokens += step.tokens; }
  void on_reply(const ReplyReport& report) override {
    const std::lock_guard lock(mutex_);
    reports_.push_back(report);
  }
  std::vector<ReplyReport> reports() {
    const std::lock_guard lock(mutex_);
    return reports_;
  }
  std::atomic<int64_t> tokens{0};

 private:
  std::mutex mutex_;
  std::vector<ReplyReport> reports_;
};

/// An engine over the slow target.
struct Served {
  explicit Served(EngineOptions options)
      : target(slow_target()),
        engine(target, none, test::shipped_tokenizer(), limited(options), &counts) {}

  static EngineOptions limited(EngineOptions options) {
    options.context_length = 600;
    return options;
  }

  test::ScriptedTarget target;
  NoDrafter none;
  Counting counts;
  Engine engine;
};

TEST(EngineQueue, WithoutAQueueEveryPlaceStillServes) {
  for (const int64_t queue : {0, 1, 3}) {
    SCOPED_TRACE(queue);
    EngineOptions options;
    options.parallel = 2;
    options.queue_length = queue;
    Served served(options);
    std::vector<std::shared_ptr<ReplyStream>> streams;
    for (int64_t i = 0; i < 2 + queue; ++i) {
      streams.push_back(served.engine.submit(request_of(400)));
      ASSERT_NE(streams.back(), nullptr) << i;
    }
    EXPECT_EQ(served.engine.submit(request_of(1)), nullptr) << "all places and the queue are taken";
    std::this_thread::sleep_for(5 * kStep);
    EXPECT_EQ(served.engine.submit(request_of(1)), nullptr) << "nor once they run";
    served.engine.cancel_all();
  }
}

// Whoever has heard of an end may ask again at once.
TEST(EngineQueue, APlaceIsFreeOnceItsReplyIsOver) {
  EngineOptions options;
  options.parallel = 1;
  options.queue_length = 0;
  Served served(options);
  for (int i = 0; i < 40; ++i) {
    const auto stream = served.engine.submit(request_of(i % 2 == 0 ? 1 : 400));
    ASSERT_NE(stream, nullptr) << i;
    if (i % 2 == 1) {
      stream->cancel();
    }
    finished_of(*stream);
  }
}

TEST(EngineQueue, WarmUpsGoBeyondTheBoundAndAreNoTraffic) {
  EngineOptions options;
  options.parallel = 1;
  options.queue_length = 0;
  Served served(options);
  std::vector<std::shared_ptr<ReplyStream>> streams;
  for (int i = 0; i < 3; ++i) {
    EngineRequest request = request_of(4);
    request.warm_up = true;
    streams.push_back(served.engine.submit(std::move(request)));
    ASSERT_NE(streams.back(), nullptr);
  }
  for (const auto& stream : streams) {
    EXPECT_EQ(finished_of(*stream).report.reply_tokens, 4);
  }
  EXPECT_EQ(served.counts.tokens, 0);
  EXPECT_TRUE(served.counts.reports().empty());
  finished_of(*served.engine.submit(request_of(5)));
  EXPECT_EQ(served.counts.tokens, 5);
  EXPECT_EQ(served.counts.reports().size(), 1U);
}

TEST(EngineQueue, WhatNeverStartedWaitedAndLookedNothingUp) {
  EngineOptions options;
  options.parallel = 1;
  Served served(options);
  const auto first = served.engine.submit(request_of(500));
  first->next();  // it runs
  const auto second = served.engine.submit(request_of(5));
  std::this_thread::sleep_for(10 * kStep);
  second->cancel();
  const ReplyReport waited = finished_of(*second).report;
  EXPECT_FALSE(waited.started);
  EXPECT_GE(waited.queue_ms, 10.0 * kStep.count());
  first->cancel();
  EXPECT_TRUE(finished_of(*first).report.started);
}

TEST(EngineQueue, PinningWantsASlotToSpare) {
  EngineOptions options;
  options.parallel = 2;
  options.slots = 2;
  Served served(options);
  EngineRequest request = request_of(1);
  request.pin_prompt = true;
  EXPECT_THROW(served.engine.submit(std::move(request)), Error);
  options.slots = 3;
  Served roomy(options);
  EngineRequest again = request_of(1);
  again.pin_prompt = true;
  finished_of(*roomy.engine.submit(std::move(again)));
  finished_of(*roomy.engine.submit(request_of(1)));  // by then the status tells of the first
  EXPECT_EQ(roomy.engine.status().slots_pinned, 1);
}

}  // namespace
}  // namespace octet
