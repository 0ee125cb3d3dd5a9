// The planner held against what comes: from the acceptance of blocks of seven drafts, the tokens a
// step that fewer drafts then give, on the shipped pair. Speed is not measured here: plans and
// measurements of it stand in docs/evaluation.md.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "octet/evaluate/evaluation.h"
#include "octet/evaluate/plan.h"
#include "octet/evaluate/summary.h"
#include "support/shipped_pair.h"

namespace octet::test {
namespace {

std::vector<SuitePrompt> some_prompts() {
  std::vector<SuitePrompt> prompts;
  for (const char* text :
       {"I want to hear a story with a mouse.",
        "Tell me a story about a fox.",
        "Write a short story about a dragon.",
        "Tell me a story about a young queen.",
        "I want to hear a story with a miller.",
        "Write a short story about a rabbit."}) {
    prompts.emplace_back().turns = {text};
  }
  return prompts;
}

/// Plain and with each number of drafts.
Evaluation evaluated(const std::vector<int>& drafts, const std::vector<SuitePrompt>& prompts) {
  ShippedPair pair;
  EvalRequest request;
  request.prompts = prompts;
  request.thinking = false;
  request.max_tokens = 96;
  // Stories are longer: ends of replies cut blocks, which the plan does not count on.
  request.ignore_end = true;
  request.arms = {{"plain", 0, false}};
  for (const int count : drafts) {
    request.arms.push_back({fmt::format("{} drafts", count), count, false});
  }
  EngineOptions options;
  options.context_length = 256;
  options.parallel = 1;
  Engine engine(*pair.target, *pair.drafter, pair.tokenizer, options);
  return evaluate(
      engine, ChatTemplate(BuiltinTemplate::kBolt), pair.tokenizer, request, [](int64_t) {}
  );
}

TEST(Plan, FewerDraftsGiveTheTokensThatItSays) {
  const std::vector<int> drafts = {1, 3, 7};
  const std::vector<SuitePrompt> prompts = some_prompts();
  const Evaluation found = evaluated(drafts, prompts);
  EXPECT_EQ(found.differing, 0);
  const ArmSummary summary = summarize(found.arms.back(), prompts);
  const AcceptanceStatistics& longest = summary.acceptance;
  AcceptanceProfile profile;
  for (int k = 0; k < longest.rows(); ++k) {
    profile.push_back(longest.conditional(k));
  }
  CycleCosts costs;
  ContextCosts& here = costs.contexts.emplace_back();
  here.forward_ms = {50, 51, 52, 53, 54, 55, 56, 57};
  here.draft_ms = 15;
  const std::vector<PlannedLength> plan = plan_drafts(costs, profile, {0, 1});
  for (size_t i = 0; i < drafts.size(); ++i) {
    const PlannedLength& length = plan.at(static_cast<size_t>(drafts[i]));
    ASSERT_EQ(length.drafts, drafts[i]);
    const double tokens = summarize(found.arms[i + 1], prompts).acceptance.tokens_per_step();
    EXPECT_GT(tokens, 1.2) << drafts[i] << " drafts";
    EXPECT_NEAR(length.tokens, tokens, 0.1 * tokens) << drafts[i] << " drafts";
  }
}

}  // namespace
}  // namespace octet::test
