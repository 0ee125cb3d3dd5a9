// What a cycle bench shows of made-up times, and two of its results beside each other.
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/cli/bench_comparison.h"
#include "octet/cli/bench_report.h"
#include "octet/formats/json_value.h"
#include "support/error_message.h"
#include "support/temporary_directory.h"

namespace octet::cli {
namespace {

using test::error_message;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

CycleRow row(std::string name, int64_t rows, std::vector<double> ms) {
  CycleRow result;
  result.name = std::move(name);
  result.rows = rows;
  result.ms = std::move(ms);
  result.floor_ratio = {2.0};
  return result;
}

/// A drafter of blocks of four; drafting costs two plain steps.
CycleReport report() {
  CycleReport made_up;
  made_up.verify_rows = 4;
  made_up.limits.resize(1);
  made_up.rows = {
      row("C_t", 1, {50}),
      row("C_v(4)", 4, {75}),
      row("C_v(8)", 8, {100}),
      row("C_d", 4, {20}),
      row("inject(4)", 4, {5}),
      row("first token", 16, {60}),
      row("prefill", 512, {4000})};
  made_up.rows[5].first_ms = 500.0;
  made_up.rows[6].first_ms = 5000.0;
  return made_up;
}

BenchHeading heading() {
  BenchHeading made_up;
  made_up.model = "m.gguf";
  made_up.draft_model = "d.gguf";
  made_up.backend = "cpu/avx2, 2 threads";
  made_up.activation = "auto";
  made_up.load_seconds = 1.5;
  return made_up;
}

JsonValue parsed(const test::TemporaryDirectory& directory, const std::string& json) {
  return read_json_object(directory.write("read.json", json));
}

TEST(BenchReport, TellsTheDrafterOfAnyBlock) {
  const std::string table = bench_table(heading(), report());
  EXPECT_THAT(table, HasSubstr("4 rows verified, 3 drafts"));
  EXPECT_THAT(table, HasSubstr("1.50x, 30.0 tokens/s")) << "3 tokens for 100 ms";
  EXPECT_THAT(table, HasSubstr("2.00 s to the first token"));
  EXPECT_THAT(table, HasSubstr("128.0 tokens/s, 102.4 in the first pass"));
  EXPECT_THAT(table, AllOf(HasSubstr("C_v(4) at context 0:"), Not(HasSubstr("C_v(8) at context"))));
}

TEST(BenchReport, TellsProgramsWhatItTellsPeople) {
  const test::TemporaryDirectory directory;
  const JsonValue json = parsed(directory, bench_json(heading(), report()));
  EXPECT_EQ(json.find_integer("verify_rows"), 4);
  EXPECT_EQ(json.find_number("load_seconds"), 1.5);
  EXPECT_EQ(json.find_number("first_token_seconds"), 2.0);
  EXPECT_EQ(*json.find_string("draft_head"), "");
  const JsonValue& speedup = json.find_array("speedups")->front();
  EXPECT_EQ(speedup.find_number("speedup"), 1.5);
  EXPECT_EQ(speedup.find_number("tokens_per_s"), 30.0);
  EXPECT_EQ(speedup.find_number("break_even"), 2.0);
  const JsonValue& prefill = json.find_array("rows")->back();
  EXPECT_EQ(prefill.find_number("tokens_per_s"), 128.0);
  EXPECT_EQ(prefill.find_number("first_tokens_per_s"), 102.4);
}

TEST(BenchReport, HeadsAProfileWithTheTimeOfItsPass) {
  CycleReport short_passes = report();
  short_passes.rows[0].ms = {2.0};  // the median of many passes
  short_passes.rows[0].profile_ms = 7.0;
  short_passes.rows[0].profile = {{"matmul Q4_K", {.ms = 6.0, .calls = 1, .bytes = 0}}};
  EXPECT_THAT(
      bench_table(heading(), short_passes),
      HasSubstr("C_t at context 0: 7.00 ms, 6.00 ms of it in operations")
  );
}

TEST(BenchComparison, TellsWhereTwoResultsDiffer) {
  const test::TemporaryDirectory directory;
  BenchHeading other = heading();
  other.model = "./m.gguf";
  other.draft_head = "64 of 1024 tokens in Q4_K";
  other.backend = "cpu/avx512, 2 threads";
  CycleReport faster = report();
  faster.rows[0].ms = {25};
  faster.rows[0].floor_bytes = 17;
  faster.rows.pop_back();
  const std::string before = directory.write("old.json", bench_json(heading(), report()));
  const std::string after = directory.write("new.json", bench_json(other, faster));
  const std::string text = compare_bench_files(before, after);
  EXPECT_THAT(text, HasSubstr("differ in: target, draft head, backend."));
  EXPECT_THAT(text, HasSubstr("the pair's -> 64 of 1024 tokens in Q4_K"));
  EXPECT_THAT(text, HasSubstr("25.00    0.500"));
  EXPECT_THAT(text, HasSubstr("Only in " + before + ": prefill (context 0, 512 rows)."));
  EXPECT_THAT(text, Not(HasSubstr("Only in " + after)));
  EXPECT_THAT(text, HasSubstr("floors of 1 rows are of other work"));
  const std::string same = compare_bench_files(before, before);
  EXPECT_THAT(same, AllOf(Not(HasSubstr("differ")), Not(HasSubstr("->")), Not(HasSubstr("Only"))));
}

TEST(BenchComparison, RefusesWhatDoesNotCompare) {
  const test::TemporaryDirectory directory;
  const std::string whole = directory.write("a.json", bench_json(heading(), report()));
  CycleReport elsewhere = report();
  for (CycleRow& measured : elsewhere.rows) {
    measured.context = 4096;
  }
  const std::string other = directory.write("b.json", bench_json(heading(), elsewhere));
  EXPECT_THAT(
      error_message([&] { compare_bench_files(whole, other); }), HasSubstr("no quantity in common")
  );
  CycleReport timeless = report();
  timeless.rows[1].ms.clear();
  const std::string bad = directory.write("c.json", bench_json(heading(), timeless));
  EXPECT_THAT(
      error_message([&] { compare_bench_files(whole, bad); }),
      AllOf(HasSubstr("c.json"), HasSubstr("C_v(4) (context 0, 4 rows)"), HasSubstr("median_ms"))
  );
  const std::string none = directory.write("d.json", "{\"rows\": []}");
  EXPECT_THAT(error_message([&] { compare_bench_files(none, whole); }), HasSubstr("d.json"));
}

}  // namespace
}  // namespace octet::cli
