// Evaluations of the shipped pair: arms agree, counts add up, nothing of one arm helps another.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "octet/evaluate/digest.h"
#include "octet/evaluate/evaluation.h"
#include "octet/evaluate/hold_conversation.h"
#include "octet/evaluate/summary.h"
#include "octet/speculation/drafter.h"
#include "support/shipped_pair.h"

namespace octet::test {
namespace {

ShippedPair& pair() {
  static ShippedPair shipped;
  return shipped;
}

std::vector<SuitePrompt> some_prompts() {
  std::vector<SuitePrompt> prompts(5);
  prompts[0].turns = {"What is the capital of Finland?", "And of France?"};
  prompts[1].turns = {"Turn on the light in the kitchen."};
  prompts[2].system = "You are a helpful shop assistant.";
  prompts[2].turns = {"I am looking for a birthday present.", "Thank you!", "Bye."};
  prompts[3].turns = {"I want to hear a story with a mouse."};
  prompts[4].turns = {std::string(60'000, 'x')};  // fits no context
  for (size_t i = 0; i < prompts.size(); ++i) {
    prompts[i].id = std::to_string(i);
    prompts[i].category = i % 2 == 0 ? "even" : "odd";
  }
  return prompts;
}

Evaluation evaluated(const EvalRequest& request) {
  EngineOptions options;
  options.context_length = 1024;
  options.parallel = request.concurrency;
  Engine engine(*pair().target, *pair().drafter, pair().tokenizer, options);
  const ChatTemplate chat_template(BuiltinTemplate::kBolt);
  int64_t last = 0;
  Evaluation out = evaluate(engine, chat_template, pair().tokenizer, request, [&](int64_t done) {
    last = done;
  });
  EXPECT_EQ(last, std::ssize(request.prompts));
  return out;
}

TEST(Evaluation, ArmsWriteTheSameRepliesAndAddUp) {
  const std::vector<SuitePrompt> prompts = some_prompts();
  for (const float temperature : {0.0F, 1.0F}) {
    for (const int concurrency : {1, 3}) {
      SCOPED_TRACE(concurrency);
      EvalRequest request;
      request.prompts = prompts;
      request.sampling.temperature = temperature;
      request.thinking = false;
      request.max_tokens = 24;
      request.concurrency = concurrency;
      request.arms = {{"plain", 0, false}, {"7 drafts", 7, false}, {"adaptive", 7, true}};
      const Evaluation found = evaluated(request);
      EXPECT_EQ(found.differing, 0);
      for (const EvalArm& arm : found.arms) {
        SCOPED_TRACE(arm.settings.name);
        ASSERT_EQ(arm.records.size(), 8U);
        const ArmSummary summary = summarize(arm, prompts);
        EXPECT_EQ(summary.replies, 7);
        EXPECT_EQ(summary.failed, 1);
        EXPECT_NE(arm.records.back().error.find("1024"), std::string::npos)
            << arm.records.back().error;
        int64_t tokens = 0;
        for (const EvalRecord& record : arm.records) {
          tokens += record.reply_tokens;
          EXPECT_LE(record.reply_tokens, 24);
          EXPECT_LE(record.first_token_ms, record.total_ms);
          if (record.error.empty()) {
            EXPECT_EQ(record.acceptance.published + 1, record.reply_tokens);
          }
        }
        EXPECT_EQ(summary.reply_tokens, tokens);
        EXPECT_EQ(summary.by_category.size(), 2U);
        if (!arm.settings.adaptive) {  // that one may draft or not
          EXPECT_EQ(summary.acceptance.drafted > 0, arm.settings.draft_max > 0);
        }
      }
    }
  }
}

TEST(Evaluation, ReuseStaysInsideAConversation) {
  const std::vector<SuitePrompt> prompts = some_prompts();
  EvalRequest request;
  request.prompts = std::span(prompts).first(1);
  request.max_tokens = 16;
  request.thinking = false;
  request.arms = {{"plain", 0, false}, {"7 drafts", 7, false}};
  const Evaluation found = evaluated(request);
  for (const EvalArm& arm : found.arms) {
    ASSERT_EQ(arm.records.size(), 2U);
    EXPECT_EQ(arm.records[0].reused_tokens, 0) << "of another arm";
    EXPECT_GT(arm.records[1].reused_tokens, 0) << "of the first turn";
  }
}

/// Counts what it is asked for, and drafts nothing.
class CountingDrafter final : public Drafter {
 public:
  std::string_view name() const override { return "counting"; }
  int max_drafts() const override { return 7; }
  std::unique_ptr<DraftState> new_state(int64_t /*positions*/) const override {
    return std::make_unique<DraftState>();
  }
  void propose(std::span<DraftTask> tasks) override { asked += std::ssize(tasks); }

  int64_t asked = 0;
};

TEST(Evaluation, EveryArmIsWarmBeforeItsFirstPrompt) {
  const std::vector<SuitePrompt> prompts = some_prompts();
  EvalRequest request;
  request.prompts = std::span(prompts).last(1);  // gets no reply
  request.arms = {{"plain", 0, false}, {"7 drafts", 7, false}};
  CountingDrafter drafter;
  EngineOptions options;
  options.context_length = 1024;
  options.parallel = 1;
  Engine engine(*pair().target, drafter, pair().tokenizer, options);
  const ChatTemplate chat_template(BuiltinTemplate::kBolt);
  const Evaluation found =
      evaluate(engine, chat_template, pair().tokenizer, request, [](int64_t) {});
  EXPECT_GT(drafter.asked, 0);
  for (const EvalArm& arm : found.arms) {
    ASSERT_EQ(arm.records.size(), 1U) << "warming up is recorded nowhere";
    EXPECT_NE(arm.records.front().error, "");
  }
}

/// What a cold engine says to a prompt is what is recorded: warming up leaves nothing behind.
TEST(Evaluation, WarmingUpChangesNoRecord) {
  const std::vector<SuitePrompt> prompts = some_prompts();
  EvalRequest request;
  request.prompts = std::span(prompts).first(4);
  request.sampling.temperature = 1.0F;
  request.sampling.seed = 5;
  request.thinking = false;
  request.max_tokens = 24;
  request.arms = {{"7 drafts", 7, false}};
  const Evaluation found = evaluated(request);
  const ChatTemplate chat_template(BuiltinTemplate::kBolt);
  size_t at = 0;
  for (size_t i = 0; i < request.prompts.size(); ++i) {
    EngineOptions options;
    options.context_length = 1024;
    options.parallel = 1;
    Engine cold(*pair().target, *pair().drafter, pair().tokenizer, options);
    ConversationSettings settings;
    settings.sampling = request.sampling;
    settings.sampling.seed += i;
    settings.thinking = false;
    settings.max_tokens = 24;
    settings.draft_max = 7;
    for (const ConversationTurn& turn :
         hold_conversation(cold, chat_template, pair().tokenizer, prompts[i], settings)) {
      ASSERT_LT(at, found.arms[0].records.size());
      const EvalRecord& record = found.arms[0].records[at++];
      Digest digest;
      for (const TokenId token : turn.reply->result.tokens) {
        digest.add(static_cast<uint64_t>(token));
      }
      EXPECT_EQ(record.text_digest, digest.value());
      EXPECT_EQ(record.reused_tokens, turn.reply->report.reused_tokens);
      EXPECT_EQ(record.acceptance.accepted, turn.reply->report.acceptance.accepted);
      EXPECT_EQ(record.acceptance.steps, turn.reply->report.acceptance.steps);
    }
  }
  EXPECT_EQ(at, found.arms[0].records.size());
}

}  // namespace
}  // namespace octet::test
