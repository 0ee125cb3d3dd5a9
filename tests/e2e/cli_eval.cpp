// `octet eval` as a user runs it, with the shipped pair: one run told in four forms, results held
// against each other, and wrong input.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/formats/json_value.h"
#include "support/run_program.h"

namespace octet::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kSuite =
    "{\"suite\":\"own\",\"id\":\"a\",\"category\":\"city\",\"language\":\"en\",\"turns\":[\"What "
    "is the "
    "capital of Finland?\",\"And of France?\"]}\n"
    "{\"suite\":\"own\",\"id\":\"b\",\"category\":\"home, sweet\",\"turns\":[\"Turn on the light "
    "in "
    "the kitchen.\"]}\n";

int64_t lines_of(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

std::vector<std::string> eval_command(const std::string& prompts, std::vector<std::string> more) {
  std::vector<std::string> command = {
      "eval",
      "-m",
      kPairTarget,
      "-md",
      kPairDrafter,
      "--prompts",
      prompts,
      "--no-think",
      "-n",
      "24",
      "-t",
      "1",
      "--temp",
      "0"};
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

TEST(Eval, TellsOneRunInFourForms) {
  const TemporaryDirectory directory;
  const std::string suite = directory.write("suite.jsonl", kSuite);
  const std::string json = directory.file("result.json");
  const std::string csv = directory.file("result.csv");
  const std::string html = directory.file("result.html");
  const ProgramResult result = run_octet(eval_command(
      suite, {"--drafts", "0", "7", "adaptive", "--json-file", json, "--csv", csv, "--html", html}
  ));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("all arms wrote the same replies"));
  EXPECT_THAT(result.out, HasSubstr("7 drafts"));
  EXPECT_THAT(result.out, HasSubstr("needs "));

  const JsonValue read = read_json_object(json);
  EXPECT_EQ(read.find_integer("differing"), 0);
  const JsonArray& arms = *read.find_array("arms");
  ASSERT_EQ(arms.size(), 3U);
  EXPECT_EQ(*arms[0].find_string("name"), "plain");
  EXPECT_EQ(arms[1].find_integer("replies"), 3);
  const double length = *arms[1].find("acceptance")->find_number("acceptance_length");
  EXPECT_GT(length, 1.5) << "the shipped pair drafts well";
  EXPECT_THAT(result.out, HasSubstr(fmt::format("{:.3f}", length))) << "table and JSON agree";
  EXPECT_EQ(arms[0].find_array("records")->size(), 3U);

  const std::string table = read_text(csv);
  EXPECT_EQ(lines_of(table), 1 + 9);
  EXPECT_THAT(table, HasSubstr("\"home, sweet\""));
  const std::string page = read_text(html);
  EXPECT_THAT(page, HasSubstr(fmt::format("{:.3f}", length)));
  EXPECT_THAT(page, HasSubstr("<svg"));
  EXPECT_THAT(page, HasSubstr("Acceptance length by language"));
  EXPECT_THAT(result.out, HasSubstr("Acceptance length by language"));
  EXPECT_THAT(page, testing::Not(HasSubstr("<script")));
  // Plots are of the arm that always drafts most, wherever it stands.
  EXPECT_THAT(page, HasSubstr("Acceptance length by category, 7 drafts"));
  EXPECT_THAT(page, HasSubstr("Steps by tokens that they added, 7 drafts"));
  EXPECT_THAT(result.out, HasSubstr("Steps by tokens that they added\n"));
  const size_t details = page.find("<details>");
  ASSERT_NE(details, std::string::npos);
  EXPECT_THAT(page.substr(details), HasSubstr("home, sweet")) << "every reply";
}

TEST(Eval, RunsMtBench) {
  const TemporaryDirectory directory;
  const std::string json = directory.file("result.json");
  const ProgramResult result = run_octet(eval_command(
      OCTET_SOURCE_DIR "/tests/golden/mt_bench.jsonl",
      {"--limit", "2", "--drafts", "0", "7", "--json-file", json}
  ));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const JsonValue read = read_json_object(json);
  EXPECT_EQ(read.find_integer("differing"), 0);
  for (const JsonValue& arm : *read.find_array("arms")) {
    EXPECT_EQ(arm.find_integer("replies"), 4) << "of two conversations of two turns";
    EXPECT_NE(arm.find("by_category")->find("writing"), nullptr);
    const JsonArray& records = *arm.find_array("records");
    ASSERT_EQ(records.size(), 4U);
    EXPECT_EQ(*records[0].find_string("suite"), "mt_bench");
    EXPECT_EQ(*records[0].find_string("id"), "81");
    EXPECT_GT(records[1].find_integer("reused_tokens"), 0) << "of the first turn";
    EXPECT_EQ(*records[3].find_string("id"), "82");
  }
}

TEST(Eval, WritesNothingInPlaceOfWhatItReads) {
  const TemporaryDirectory directory;
  const std::string suite = directory.write("suite.jsonl", kSuite);
  for (const char* flag : {"--json-file", "--csv", "--html"}) {
    const ProgramResult result = run_octet(eval_command(suite, {flag, suite}));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("suite.jsonl"));
    EXPECT_EQ(read_text(suite), kSuite);
    EXPECT_EQ(run_octet(eval_command(suite, {flag, directory.file("no/where")})).exit_code, 2);
  }
}

TEST(Eval, WritesNoResultOverAnother) {
  const TemporaryDirectory directory;
  const std::string suite = directory.write("suite.jsonl", kSuite);
  const std::string result_file = directory.file("result");
  const std::string same = directory.file("./result");
  const std::vector<std::string> pairs[] = {
      {"--json-file", result_file, "--html", result_file},
      {"--csv", result_file, "--html", same},
      {"--json-file", same, "--csv", result_file}};
  for (const std::vector<std::string>& flags : pairs) {
    const ProgramResult result = run_octet(eval_command(suite, flags));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(
        result.err, HasSubstr("two of --json-file, --csv and --html name the same file; give each")
    );
    EXPECT_FALSE(std::filesystem::exists(result_file));
  }
}

TEST(Eval, ComparesOnlyWhatIsComparable) {
  const TemporaryDirectory directory;
  const std::string suite = directory.write("suite.jsonl", kSuite);
  const std::string first = directory.file("a.json");
  const std::string second = directory.file("b.json");
  const std::string longer = directory.file("c.json");
  for (const std::string& file : {first, second}) {
    ASSERT_EQ(run_octet(eval_command(suite, {"--json-file", file})).exit_code, 0);
  }
  ASSERT_EQ(run_octet(eval_command(suite, {"--limit", "1", "--json-file", longer})).exit_code, 0);
  const ProgramResult same = run_octet({"eval", "diff", first, second});
  ASSERT_EQ(same.exit_code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("(+0.0 %)")) << "acceptance does not depend on time";
  const ProgramResult other = run_octet({"eval", "diff", first, longer});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("prompts is 2"));
  const std::string gemma = directory.file("d.json");
  ASSERT_EQ(
      run_octet(eval_command(suite, {"--chat-template", "gemma4", "--json-file", gemma})).exit_code,
      0
  );
  const ProgramResult templates = run_octet({"eval", "diff", first, gemma});
  EXPECT_EQ(templates.exit_code, 2);
  EXPECT_THAT(templates.err, HasSubstr("chat template is digest "));
  const ProgramResult none = run_octet({"eval", "diff", first, suite});
  EXPECT_EQ(none.exit_code, 2);
}

/// `text` with the first `from` replaced, which must be there.
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(Eval, ComparesNoOtherSettingsAndNoOtherReplies) {
  const TemporaryDirectory directory;
  const std::string suite = directory.write("suite.jsonl", kSuite);
  const auto result_of = [&](const std::string& name, std::vector<std::string> more) {
    std::string file = directory.file(name);
    more.insert(more.end(), {"--drafts", "0", "--json-file", file});
    const ProgramResult result = run_octet(eval_command(suite, more));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return file;
  };
  const std::string first = result_of("a.json", {"--repeat-penalty", "1.1"});
  const auto expect_refusal = [&](const std::string& other, const std::string& why) {
    for (const bool swapped : {false, true}) {
      const ProgramResult diff =
          run_octet({"eval", "diff", swapped ? other : first, swapped ? first : other});
      EXPECT_EQ(diff.exit_code, 2) << why;
      EXPECT_THAT(diff.err, HasSubstr(why));
    }
  };
  const struct {
    std::vector<std::string> flags;
    std::string why;
  } others[] = {
      {{"--logit-bias", "10=-100"}, "bias 10=-100"},
      {{"--repeat-last-n", "8"}, "in the last 8 tokens"},
      {{"--penalise-prompt"}, "of prompt and reply"},
      {{"--kv-type", "q8_0"}, "kv type is "},
      {{"-c", "512"}, "context is "},
  };
  for (auto [flags, why] : others) {
    flags.insert(flags.end(), {"--repeat-penalty", "1.1"});
    expect_refusal(result_of("b.json", flags), why);
  }
  const std::string text = read_text(first);
  EXPECT_THAT(text, HasSubstr("\"activation\":\"auto\""));
  expect_refusal(
      directory.write("b.json", replaced(text, "\"replies\":3", "\"replies\":2")),
      "not of the same replies: plain has "
  );
  expect_refusal(
      directory.write("b.json", replaced(text, "\"failed\":0", "\"failed\":1")),
      "not of the same replies: plain has "
  );
  const std::string differing =
      directory.write("b.json", replaced(text, "\"differing\":0", "\"differing\":2"));
  const ProgramResult diff = run_octet({"eval", "diff", first, differing});
  EXPECT_EQ(diff.exit_code, 0) << diff.err;
  EXPECT_THAT(diff.out, HasSubstr("2 replies of the second differ"));
}

TEST(Eval, ComparesEveryArmAndSettingOfBothResults) {
  const TemporaryDirectory directory;
  const std::string suite = directory.write("suite.jsonl", kSuite);
  const std::string one = directory.file("one.json");
  const std::string two = directory.file("two.json");
  ASSERT_EQ(run_octet(eval_command(suite, {"--drafts", "0", "--json-file", one})).exit_code, 0);
  ASSERT_EQ(
      run_octet(eval_command(suite, {"--drafts", "0", "2", "--json-file", two})).exit_code, 0
  );
  EXPECT_THAT(run_octet({"eval", "diff", one, two}).out, HasSubstr("only in the second"));
  EXPECT_THAT(run_octet({"eval", "diff", two, one}).out, HasSubstr("only in the first"));
  const std::string text = read_text(one);
  const std::string more = directory.write(
      "more.json", replaced(text, "\"settings\":{", "\"settings\":{\"weather\":\"fair\",")
  );
  ProgramResult diff = run_octet({"eval", "diff", one, more});
  EXPECT_EQ(diff.exit_code, 2);
  EXPECT_THAT(diff.err, HasSubstr("weather is missing in the first and fair in the second"));
  const std::string old =
      directory.write("old.json", replaced(text, "\"version\":2", "\"version\":1"));
  diff = run_octet({"eval", "diff", old, one});
  EXPECT_EQ(diff.exit_code, 2);
  EXPECT_THAT(diff.err, HasSubstr("old.json: is a result of version 1, expected 2"));
}

TEST(Eval, RefusesWrongInput) {
  const TemporaryDirectory directory;
  const std::string bad = directory.write("bad.jsonl", kSuite + "{\"turns\": 3}\n");
  ProgramResult result = run_octet(eval_command(bad, {}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("bad.jsonl: line 3"));
  result = run_octet(eval_command(bad, {"--skip-bad-lines", "--drafts", "0"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("line 3"));
  result = run_octet(eval_command(bad, {"--drafts", "16"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("expects 0 to 15, max or adaptive, not '16'"));
  result = run_octet(eval_command(bad, {"--skip-bad-lines", "--drafts", "0", "12"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(
      result.err,
      HasSubstr("--drafts 12 asks for more than the 7 drafts that this drafter makes; use 7 or max")
  );
  result = run_octet({"eval", "-m", kPairTarget});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--prompts"));
  const std::string suite = directory.write("suite.jsonl", kSuite);
  result = run_octet({"eval", "-m", kPairTarget, "--prompts", suite});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("needs a drafter (-md)"));
}

TEST(Eval, NamesTheLineOfAPromptWithoutAReply) {
  const TemporaryDirectory directory;
  const std::string suite = directory.write(
      "suite.jsonl", kSuite + "\nno json\n{\"turns\":[\"" + std::string(60'000, 'x') + "\"]}\n"
  );
  const ProgramResult result =
      run_octet(eval_command(suite, {"--skip-bad-lines", "-c", "512", "--drafts", "0"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("suite.jsonl: line 5 got no reply: "));
}

TEST(Eval, ARunWithoutAReplyIsAnError) {
  const TemporaryDirectory directory;
  const std::string suite =
      directory.write("suite.jsonl", "{\"turns\":[\"" + std::string(9000, 'x') + "\"]}\n");
  const std::string json = directory.file("result.json");
  const ProgramResult result =
      run_octet(eval_command(suite, {"-c", "64", "--drafts", "0", "--json-file", json}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(
      result.err,
      AllOf(
          HasSubstr("no prompt got a reply from plain; "),
          HasSubstr("suite.jsonl: line 1 got no reply: ")
      )
  );
  const JsonValue read = read_json_object(json);
  EXPECT_EQ(read.find_array("arms")->at(0).find_integer("failed"), 1);
}

/// What `octet bench cycle --json` prints, with plain round costs.
std::string costs_json() {
  std::string rows;
  for (const int context : {0, 4096}) {
    for (int k = 1; k <= 8; ++k) {
      rows += fmt::format(
          R"({{"name":"{}","context":{},"rows":{},"median_ms":{}}},)",
          k == 1 ? "C_t" : fmt::format("C_v({})", k),
          context,
          k,
          50.0 + 4.0 * (k - 1) + context / 1024.0
      );
    }
    rows += fmt::format(R"({{"name":"C_d","context":{},"rows":8,"median_ms":18.0}},)", context);
    rows += fmt::format(
        R"json({{"name":"inject(4)","context":{},"rows":4,"median_ms":2.0}},)json", context
    );
  }
  rows += R"({"name":"prefill","context":0,"rows":512,"median_ms":5120.0})";
  return fmt::format(R"({{"model":"m","rows":[{}]}})", rows);
}

TEST(EvalPlan, SaysWhatDraftingWillBeWorth) {
  const TemporaryDirectory folder;
  const std::string costs = folder.write("costs.json", costs_json());
  const ProgramResult text = run_octet(
      {"eval",
       "plan",
       costs,
       "--length",
       "3.83",
       "--concurrency",
       "1",
       "16",
       "--workload",
       "0/3K/50"}
  );
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(
      text.out,
      AllOf(
          HasSubstr("3.83 tokens a step with all 7"),
          HasSubstr("    4096        16"),
          HasSubstr("Drafting does not pay with as many conversations together: 16 at context 0"),
          HasSubstr("0/3K/50"),
          HasSubstr("0/3K/50         1       30.46 s"),
          HasSubstr("0/3K/50        16      487.29 s")
      )
  );
  const ProgramResult json =
      run_octet({"eval", "plan", costs, "--probabilities", "1", "--contexts", "2048", "--json"});
  EXPECT_EQ(json.exit_code, 0) << json.err;
  const JsonValue plan = parse_json(bytes_of(json.out));
  const JsonValue& place = plan.find_array("places")->at(0);
  EXPECT_EQ(place.find_integer("best_drafts"), 7);
  const JsonValue& all = place.find_array("lengths")->at(7);
  EXPECT_NEAR(all.find_number("step_ms").value(), 80.0 + 18.0 + 4.0, 1e-6);
  EXPECT_NEAR(all.find_number("speedup").value(), 8.0 * 52.0 / 102.0, 1e-6);
}

TEST(EvalPlan, TakesTheAcceptanceOfAnEvaluation) {
  const TemporaryDirectory folder;
  const std::string costs = folder.write("costs.json", costs_json());
  const std::string result = folder.write(
      "eval.json",
      R"({"arms":[{"name":"0","adaptive":false,"acceptance":{"by_position":[]}},)"
      R"({"name":"max","adaptive":false,"acceptance":{"by_position":[0.8,0.4,0.4,0.2,0.2,0.2,0.1]}},)"
      R"({"name":"adaptive","adaptive":true,"acceptance":{"by_position":[0.9,0.9,0.9,0.9,0.9,0.9,0.9]}}]})"
  );
  const ProgramResult text = run_octet({"eval", "plan", costs, "--eval", result});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(
      text.out,
      AllOf(
          HasSubstr("probability of each draft: 0.80 0.50 1.00 0.50 1.00 1.00 0.50"),
          HasSubstr("3.30 tokens a step with all 7")
      )
  );
}

TEST(EvalPlan, RefusesWhatItCannotPlanFrom) {
  const TemporaryDirectory folder;
  const std::string costs = folder.write("costs.json", costs_json());
  const std::string other = folder.write("other.json", R"({"rows":[{"name":"C_t"}]})");
  const auto expect_refusal = [](std::vector<std::string> arguments, const std::string& part) {
    arguments.insert(arguments.begin(), {"eval", "plan"});
    const ProgramResult result = run_octet(arguments);
    EXPECT_EQ(result.exit_code, 2) << part;
    EXPECT_THAT(result.err, HasSubstr(part));
    EXPECT_EQ(result.out, "");
  };
  expect_refusal({other, "--length", "3"}, "other.json does not hold C_t, C_v(2)");
  const std::string wild = folder.write(
      "wild.json",
      replaced(costs_json(), R"(4,"median_ms":2.0)", R"(4000000000000,"median_ms":2.0)")
  );
  expect_refusal(
      {wild, "--length", "3"},
      "wild.json: inject(4) at context 0 has 4000000000000 rows, expected 1 to 4096"
  );
  const std::string wide = folder.write(
      "wide.json",
      replaced(costs_json(), R"("rows":8,"median_ms":78})", R"("rows":4097,"median_ms":78})")
  );
  expect_refusal({wide, "--length", "3"}, "wide.json: C_v(8) at context 0 has 4097 rows");
  expect_refusal({costs, "--length", "9"}, "acceptance length of 9 is none of 1 to 8");
  expect_refusal({costs, "--eval", other}, "no arm with a fixed number of drafts");
  expect_refusal({costs}, "--length");
  expect_refusal({costs, "--length", "3", "--probabilities", "0.5"}, "--length");
  expect_refusal({costs, "--length", "3", "--workload", "3K/50"}, "'3K/50'");
  expect_refusal({costs, "--length", "3", "--workload", "0/0/50"}, "'0/0/50'");
}

}  // namespace
}  // namespace octet::test
