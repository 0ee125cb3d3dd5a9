// Urgent replies where slots or memory are short: less urgent ones give theirs up and go on later
// as though nothing had happened.

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "octet/engine/engine.h"
#include "support/engine_requests.h"
#include "support/random_models.h"

namespace octet {
namespace {

using test::conversation;
using test::engine_request;
using test::expect_same;
using test::kContext;
using test::options_of;
using test::Outcome;
using test::outcome_of;
using test::pair;
using test::plain_reply;
using test::random_request;
using test::RandomNumbers;
using test::request_for;
using test::wait_until_idle;
using test::Wanted;

enum class Short : uint8_t { kSlots, kMemory };

/// Room for one such reply, and for no other beside it.
EngineOptions tight_options(Short what, const GenerateRequest& largest) {
  EngineOptions options = options_of(1);
  if (what == Short::kSlots) {
    options.slots = 1;
  } else {
    const auto cache = pair().target->new_cache(kContext, options.kv_type);
    const int64_t positions = std::ssize(largest.prompt) + largest.max_tokens;
    options.cache_bytes = cache->bytes_at(std::min(kContext, positions));
  }
  return options;
}

/// A reply that goes on until something ends it.
GenerateRequest endless(int64_t tokens) {
  GenerateRequest request = request_for(conversation(0, 1, false));
  request.max_tokens = tokens;
  request.stop_tokens = std::vector<TokenId>{};
  return request;
}

EngineRequest with_priority(EngineRequest request, int priority) {
  request.priority = priority;
  return request;
}

/// The events of a reply as they come, to be looked at between those of another.
struct Listener {
  std::shared_ptr<ReplyStream> stream;
  Outcome outcome;
  bool over = false;
  int started = 0;
  int progress_behind_words = 0;

  void take(ReplyStreamEvent event) {
    if (auto* tokens = std::get_if<ReplyTokens>(&event)) {
      for (const EmittedToken& token : tokens->tokens) {
        outcome.tokens.push_back(token.token);
        outcome.text += token.text;
      }
    } else if (auto* finished = std::get_if<ReplyFinished>(&event)) {
      outcome.finished = std::move(*finished);
      outcome.text += outcome.finished.rest;
      over = true;
    } else if (auto* failed = std::get_if<ReplyFailed>(&event)) {
      ADD_FAILURE() << failed->error.what();
      over = true;
    } else if (std::holds_alternative<ReplyStarted>(event)) {
      ++started;
    } else {
      progress_behind_words += outcome.tokens.empty() ? 0 : 1;
    }
  }
  void take_all() {
    while (auto event = stream->try_next()) {
      take(std::move(*event));
    }
  }
  /// Waits until more tokens have come, or the end.
  void await_tokens() {
    const size_t before = outcome.tokens.size();
    while (!over && outcome.tokens.size() == before) {
      take(stream->next());
    }
  }
};

// Whatever a reply has in the making (draws, penalties, scores, a budget of thought, a grammar,
// stop strings, the least length) survives that its slot is taken, again and again.
TEST(EnginePreemption, AnInterruptedReplyIsTheUndisturbedOne) {
  int interruptions = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    RandomNumbers random(seed);
    Wanted wanted = random_request(random);
    if (wanted.grammar == nullptr) {
      wanted.generate.max_tokens = 120;
      wanted.generate.stop_tokens = std::vector<TokenId>{};
    }
    const GenerateResult plain = plain_reply(wanted);
    GenerateRequest urgent = request_for(conversation(1, 0, false));
    urgent.max_tokens = 3;
    const GenerateResult urgent_plain = plain_reply(urgent);
    const Short what = seed % 2 == 0 ? Short::kSlots : Short::kMemory;
    GenerateRequest largest = wanted.generate;
    largest.max_tokens = 120;
    Engine engine(*pair().target, *pair().drafter, pair().tokenizer, tight_options(what, largest));
    Listener behind;
    behind.stream = engine.submit(with_priority(wanted.engine_request(), -1));
    behind.take(behind.stream->next());  // it runs
    while (!behind.over) {
      const Outcome first = outcome_of(*engine.submit(with_priority(engine_request(urgent), 5)));
      expect_same(first, urgent_plain);
      behind.take_all();
      interruptions += behind.over ? 0 : 1;
      behind.await_tokens();
    }
    expect_same(behind.outcome, plain);
    EXPECT_EQ(behind.started, 1);
    EXPECT_EQ(behind.progress_behind_words, 0);
    const auto count = std::ssize(plain.tokens);
    EXPECT_EQ(behind.outcome.finished.report.reply_tokens, count);
    // The first step of words may be one with drafts, where but a row of the prompt was missing.
    EXPECT_LE(std::ssize(behind.outcome.finished.report.between_tokens_ms), count - 1);
    EXPECT_GE(behind.outcome.finished.report.acceptance.published, count - 1);
    EXPECT_LE(behind.outcome.finished.report.acceptance.published, count);
    wait_until_idle(engine);
  }
  EXPECT_GT(interruptions, 24) << "nothing was interrupted";
}

// The first sentence of the API's documentation: it does not wait for one that is less urgent.
TEST(EnginePreemption, UrgentRepliesDoNotWaitForASlotOrMemory) {
  for (const Short what : {Short::kSlots, Short::kMemory}) {
    SCOPED_TRACE(static_cast<int>(what));
    const GenerateRequest slow = endless(500);
    const GenerateRequest quick = request_for(conversation(1, 0, false));
    const GenerateResult slow_plain =
        plain_reply(slow);  // the models are the engine's from here on
    const GenerateResult quick_plain = plain_reply(quick);
    Engine engine(*pair().target, *pair().drafter, pair().tokenizer, tight_options(what, slow));
    Listener behind;
    behind.stream = engine.submit(with_priority(engine_request(slow), -1));
    behind.await_tokens();
    const Outcome first = outcome_of(*engine.submit(with_priority(engine_request(quick), 5)));
    behind.take_all();
    EXPECT_FALSE(behind.over);
    EXPECT_LT(behind.outcome.tokens.size(), 400U);
    expect_same(first, quick_plain);
    while (!behind.over) {
      behind.await_tokens();
    }
    expect_same(behind.outcome, slow_plain);
  }
}

// A reply that waits to go on can be cancelled, and its deadline holds.
TEST(EnginePreemption, WhoWaitsToGoOnCanBeEnded) {
  for (const bool cancel : {true, false}) {
    const GenerateRequest slow = endless(700);
    Engine engine(
        *pair().target, *pair().drafter, pair().tokenizer, tight_options(Short::kSlots, slow)
    );
    EngineRequest background = with_priority(engine_request(slow), -1);
    background.deadline_ms = cancel ? 0.0 : 150.0;
    Listener behind;
    behind.stream = engine.submit(std::move(background));
    behind.await_tokens();
    Listener urgent;
    urgent.stream = engine.submit(with_priority(engine_request(slow), 5));
    urgent.await_tokens();
    if (cancel) {
      behind.stream->cancel();
    }
    while (!behind.over) {
      behind.await_tokens();
    }
    EXPECT_EQ(
        behind.outcome.finished.result.finish,
        cancel ? FinishReason::kCancelled : FinishReason::kDeadline
    );
    EXPECT_EQ(behind.outcome.finished.result.tokens, behind.outcome.tokens);
    urgent.stream->cancel();
    wait_until_idle(engine);
  }
}

// Equals wait for each other, and nobody is disturbed where that would not make room enough.
TEST(EnginePreemption, OnlyLessUrgentRepliesGiveWay) {
  const GenerateRequest slow = endless(150);
  const GenerateResult plain = plain_reply(slow);
  Engine engine(
      *pair().target, *pair().drafter, pair().tokenizer, tight_options(Short::kSlots, slow)
  );
  Listener one;
  one.stream = engine.submit(with_priority(engine_request(slow), 2));
  one.await_tokens();
  const auto two = engine.submit(with_priority(engine_request(slow), 2));
  ASSERT_TRUE(std::holds_alternative<ReplyStarted>(two->next()));
  one.take_all();
  EXPECT_TRUE(one.over) << "the second began before the first had ended";
  expect_same(outcome_of(*two), plain);
}

// Everything together: two places, two slots, and priorities at random.
TEST(EnginePreemption, ACrowdOfPrioritiesChangesNothing) {
  for (uint64_t seed = 20; seed < 23; ++seed) {
    SCOPED_TRACE(seed);
    RandomNumbers random(seed);
    EngineOptions options = options_of(2);
    options.slots = 2;
    Engine engine(*pair().target, *pair().drafter, pair().tokenizer, options);
    std::vector<GenerateResult> plain;
    std::vector<Wanted> requests;
    for (int i = 0; i < 16; ++i) {
      requests.push_back(random_request(random));
      plain.push_back(plain_reply(requests.back()));
    }
    std::vector<std::shared_ptr<ReplyStream>> streams;
    for (const Wanted& request : requests) {
      const auto priority = static_cast<int>(random.integer(-2, 2));
      streams.push_back(engine.submit(with_priority(request.engine_request(), priority)));
      ASSERT_NE(streams.back(), nullptr);
      std::this_thread::sleep_for(std::chrono::milliseconds(random.integer(0, 8)));
    }
    for (size_t i = 0; i < streams.size(); ++i) {
      SCOPED_TRACE(fmt::format("request {}", i));
      expect_same(outcome_of(*streams[i]), plain[i]);
    }
    wait_until_idle(engine);
  }
}

}  // namespace
}  // namespace octet
