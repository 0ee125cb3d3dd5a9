// Deadlines of speech against the clock: a scripted target that thinks as long as it may, at a
// known pace, so that what comes too late comes far too late.

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <thread>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "octet/engine/engine.h"
#include "octet/speculation/drafters/no_drafter.h"
#include "support/scripted_target.h"
#include "support/shipped_tokenizer.h"

namespace octet {
namespace {

using Clock = std::chrono::steady_clock;

constexpr TokenId kThought = 300;
constexpr TokenId kWord = 301;

/// Thinks until somebody closes the thought, then speaks, forever.
test::ScriptedTarget thinker(std::chrono::milliseconds pace) {
  const TokenId close = test::shipped_tokenizer()->chat_tokens().channel_close;
  return {
      test::shipped_tokenizer()->vocabulary_size(),
      [=](std::span<const TokenId> prefix, std::span<float> logits) {
        std::this_thread::sleep_for(pace);
        std::ranges::fill(logits, 0.0F);
        const bool closed = std::ranges::find(prefix, close) != prefix.end();
        logits[static_cast<size_t>(closed ? kWord : kThought)] = 1.0F;
      }};
}

struct Talk {
  int64_t thoughts = 0;
  int64_t words = 0;
  double first_word_ms = 0.0;
  double close_ms = 0.0;  // what its close takes at the target's pace
  FinishReason finish = FinishReason::kNone;
};

Talk talk_of(EngineRequest request, std::chrono::milliseconds pace) {
  test::ScriptedTarget target = thinker(pace);
  NoDrafter none;
  EngineOptions options;
  options.context_length = 600;
  const auto tokenizer = test::shipped_tokenizer();
  request.generate.prompt = tokenizer->encode("Hello<|channel>thought\n", SpecialTokens::kParse);
  request.generate.max_tokens = 400;
  request.thinking_close =
      tokenizer->encode(" so, so, so, so, so.<channel|>", SpecialTokens::kParse);
  EXPECT_GE(request.thinking_close.size(), 8U) << "one that takes its time";
  const auto close = static_cast<double>(request.thinking_close.size() + 1);
  Engine engine(target, none, tokenizer, options);
  const Clock::time_point begin = Clock::now();
  const auto stream = engine.submit(std::move(request));
  Talk talk;
  talk.close_ms = close * static_cast<double>(pace.count());
  for (;;) {
    ReplyStreamEvent event = stream->next();
    if (auto* finished = std::get_if<ReplyFinished>(&event)) {
      talk.finish = finished->result.finish;
      return talk;
    }
    if (auto* tokens = std::get_if<ReplyTokens>(&event)) {
      for (const EmittedToken& token : tokens->tokens) {
        talk.thoughts += token.token == kThought ? 1 : 0;
        talk.words += token.token == kWord ? 1 : 0;
        if (talk.words == 1 && talk.first_word_ms == 0.0) {
          talk.first_word_ms =
              std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
        }
      }
      if (talk.words >= 3) {
        stream->cancel();
      }
    }
  }
}

// To close the thought takes a good part of the time, which must be there when it begins.
TEST(EngineDeadlines, SpeechBeginsByItsDeadlineAndNotMuchSooner) {
  EngineRequest request;
  request.speech_deadline_ms = 1200.0;
  const Talk talk = talk_of(std::move(request), std::chrono::milliseconds(40));
  EXPECT_GE(talk.thoughts, 4) << "the thought had time";
  EXPECT_GE(talk.words, 1);
  EXPECT_LT(talk.first_word_ms, 1200.0 + 0.6 * talk.close_ms) << "closed no sooner than then";
}

TEST(EngineDeadlines, ADeadlineAloneLeavesHalfOfItForSpeech) {
  EngineRequest request;
  request.deadline_ms = 900.0;
  const Talk talk = talk_of(std::move(request), std::chrono::milliseconds(10));
  EXPECT_GE(talk.thoughts, 4);
  EXPECT_GE(talk.words, 3);
  EXPECT_LT(talk.first_word_ms, 700.0);
}

TEST(EngineDeadlines, WithoutOneAThoughtMayTakeAllThereIs) {
  const Talk talk = talk_of({}, std::chrono::milliseconds(0));
  EXPECT_EQ(talk.thoughts, 400);
  EXPECT_EQ(talk.finish, FinishReason::kLength);
}

}  // namespace
}  // namespace octet
