// Arithmetic of evaluations: quantiles, pooled acceptance, break-even, and the reader of suites.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/evaluate/prompt_suite.h"
#include "octet/evaluate/summary.h"
#include "support/temporary_directory.h"

namespace octet {
namespace {

TEST(PromptSuite, ReadsEveryField) {
  const test::TemporaryDirectory folder;
  PromptSuite suite;
  read_suite(
      folder.write(
          "suite.jsonl",
          "{\"suite\":\"s\",\"id\":7,\"category\":\"c\",\"language\":\"de\",\"system\":\"be "
          "brief\","
          "\"turns\":[\"a\",\"b\"],\"tools\":[{\"type\":\"function\"}]}\n\n{\"turns\":[\"x\"]}\n"
      ),
      0,
      BadLines::kRefuse,
      suite
  );
  ASSERT_EQ(suite.prompts.size(), 2U);
  EXPECT_EQ(suite.prompts[0].id, "7");
  EXPECT_EQ(suite.prompts[0].language, "de");
  EXPECT_EQ(suite.prompts[0].system, "be brief");
  EXPECT_EQ(suite.prompts[0].turns, (std::vector<std::string>{"a", "b"}));
  EXPECT_NE(suite.prompts[0].tools, nullptr);
  EXPECT_EQ(suite.prompts[1].turns.front(), "x");
  EXPECT_EQ(suite.prompts[1].tools, nullptr);
  EXPECT_EQ(place_of(suite.prompts[1], 1), folder.file("suite.jsonl") + ": line 3");
  suite.prompts[0].path.clear();
  EXPECT_EQ(place_of(suite.prompts[0], 0), "prompt 1 ('7')");
}

TEST(PromptSuite, RefusesOrReportsBadLinesByNumber) {
  const test::TemporaryDirectory folder;
  for (const std::string& bad :
       {std::string("{\"turns\":[]}"),
        std::string("{\"turns\":\"x\"}"),
        std::string("{\"turns\":[1]}"),
        std::string("not json"),
        std::string("[1]"),
        std::string("{\"turns\":[\"x\"],\"tools\":{}}"),
        "{\"turns\":[\"x\"],\"tools\":" + std::string(100'000, '[') + std::string(100'000, ']') +
            "}",
        std::string("{\"turns\":[\"\xff\"]}")}) {
    SCOPED_TRACE(bad.substr(0, 40));
    const std::string path = folder.write("suite.jsonl", "{\"turns\":[\"a\"]}\n" + bad + "\n");
    PromptSuite refusing;
    try {
      read_suite(path, 0, BadLines::kRefuse, refusing);
      FAIL() << "expected an error";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(path + ": line 2"), std::string::npos)
          << error.what();
    }
    PromptSuite skipping;
    read_suite(path, 0, BadLines::kSkip, skipping);
    EXPECT_EQ(skipping.prompts.size(), 1U);
    ASSERT_EQ(skipping.skipped.size(), 1U);
    EXPECT_EQ(skipping.skipped.front().line, 2);
  }
  PromptSuite none;
  EXPECT_THROW(read_suite(folder.write("suite.jsonl", "\n\n"), 0, BadLines::kSkip, none), Error);
  EXPECT_THROW(read_suite("/no/such/file", 0, BadLines::kSkip, none), Error);
  try {
    read_suite(folder.write("bad.jsonl", "\n[1]\n\"x\"\n"), 0, BadLines::kSkip, none);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("is line 2: expected an object"), std::string::npos)
        << error.what();
  }
}

TEST(PromptSuite, DigestSeesEveryText) {
  SuitePrompt prompt;
  prompt.id = "1";
  prompt.turns = {"ab", "c"};
  SuitePrompt other = prompt;
  EXPECT_EQ(suite_digest({&prompt, 1}), suite_digest({&other, 1}));
  other.turns = {"a", "bc"};
  EXPECT_NE(suite_digest({&prompt, 1}), suite_digest({&other, 1}));
  other = prompt;
  other.path = "elsewhere";
  other.line = 7;
  EXPECT_EQ(suite_digest({&prompt, 1}), suite_digest({&other, 1})) << "of what is asked alone";
  other = prompt;
  other.system = "s";
  EXPECT_NE(suite_digest({&prompt, 1}), suite_digest({&other, 1}));
}

TEST(Quantiles, AreNearestRanks) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) {
    values.push_back(i);
  }
  const Quantiles q = quantiles_of(values);
  EXPECT_EQ(q.count, 100);
  EXPECT_DOUBLE_EQ(q.mean, 50.5);
  EXPECT_DOUBLE_EQ(q.p50, 50.0);
  EXPECT_DOUBLE_EQ(q.p90, 90.0);
  EXPECT_DOUBLE_EQ(q.p99, 99.0);
  EXPECT_DOUBLE_EQ(quantiles_of({3.0}).p99, 3.0);
  EXPECT_EQ(quantiles_of({}).count, 0);
}

EvalRecord record(int64_t prompt, int64_t tokens, int64_t steps, double first, double total) {
  EvalRecord out;
  out.prompt = prompt;
  out.reply_tokens = tokens;
  out.first_token_ms = first;
  out.total_ms = total;
  out.acceptance.steps = steps;
  out.acceptance.published = tokens - 1;
  return out;
}

TEST(Evaluation, CountsWhatDiffersByPromptAndTurn) {
  std::vector<EvalRecord> first(4);
  for (size_t i = 0; i < first.size(); ++i) {
    first[i].prompt = static_cast<int64_t>(i / 2);
    first[i].turn = static_cast<int>(i % 2);
    first[i].text_digest = i;
  }
  std::vector<EvalRecord> other = first;
  EXPECT_EQ(differing_replies(first, other), 0);
  other[2].text_digest = 99;
  EXPECT_EQ(differing_replies(first, other), 1);
  other.erase(other.begin() + 1);  // the turns behind it are not taken for others
  EXPECT_EQ(differing_replies(first, other), 2);
  EXPECT_EQ(differing_replies(other, first), 2);
  other.clear();
  EXPECT_EQ(differing_replies(first, other), 4);
  other = first;
  other[3].error = "too long";
  EXPECT_EQ(differing_replies(first, other), 1);
}

TEST(Summary, AddsUpByHand) {
  std::vector<SuitePrompt> prompts(2);
  prompts[0].category = "math";
  prompts[0].language = "de";
  EvalArm plain{{"plain", 0, false}, 1000.0, {}};
  plain.records = {record(0, 11, 10, 20.0, 120.0), record(1, 21, 20, 40.0, 240.0)};
  EvalArm drafted{{"7 drafts", 7, false}, 500.0, {}};
  drafted.records = {record(0, 11, 5, 20.0, 95.0), record(1, 21, 10, 40.0, 190.0)};
  EvalRecord failed;
  failed.error = "too long";
  drafted.records.push_back(failed);
  const ArmSummary a = summarize(plain, prompts);
  const ArmSummary b = summarize(drafted, prompts);
  EXPECT_EQ(a.replies, 2);
  EXPECT_EQ(b.failed, 1);
  EXPECT_DOUBLE_EQ(a.tokens_per_second(), 1000.0 * 30 / 300.0);
  EXPECT_DOUBLE_EQ(a.step_ms(), 10.0);
  EXPECT_DOUBLE_EQ(b.step_ms(), 15.0);
  EXPECT_DOUBLE_EQ(break_even(a, b), 1.5);
  EXPECT_DOUBLE_EQ(b.acceptance.tokens_per_step(), 2.0);
  EXPECT_DOUBLE_EQ(a.throughput(), 32.0);
  EXPECT_DOUBLE_EQ(a.per_token_ms.p50, 10.0);
  EXPECT_EQ(a.by_category.at("math").steps, 10);
  EXPECT_EQ(a.by_category.at("none").steps, 20);
  EXPECT_EQ(a.by_language.size(), 1U);
}

}  // namespace
}  // namespace octet
