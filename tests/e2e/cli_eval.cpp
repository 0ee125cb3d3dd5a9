// `octet eval` as a user runs it, with the shipped pair: one run told in four forms, results held
// against each other, and wrong input.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/formats/json_value.h"
#include "support/run_program.h"

namespace octet::test {
namespace {

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
  const ProgramResult none = run_octet({"eval", "diff", first, suite});
  EXPECT_EQ(none.exit_code, 2);
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
  result = run_octet({"eval", "-m", kPairTarget});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--prompts"));
  const std::string suite = directory.write("suite.jsonl", kSuite);
  result = run_octet({"eval", "-m", kPairTarget, "--prompts", suite});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("needs a drafter (-md)"));
}

}  // namespace
}  // namespace octet::test
