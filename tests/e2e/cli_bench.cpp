// `octet bench` as a user runs it, with the shipped pair: cycles told as table and JSON and held
// against each other, another program beside them, the policy, memory, and wrong input.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/formats/json_value.h"
#include "support/run_program.h"

namespace octet::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

ProgramResult run_bench(const std::string& which, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"bench", which};
  arguments.insert(arguments.end(), {"-m", kPairTarget, "-md", kPairDrafter, "-t", "1"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_octet(arguments);
}

ProgramResult run_cycle(std::vector<std::string> more) {
  more.insert(more.begin(), {"--contexts", "0", "--rounds", "1"});
  return run_bench("cycle", more);
}

/// In the unit in which it was told; NaN where `label` is not followed by a number.
double figure_after(const std::string& label, const std::string& text) {
  std::smatch match;
  const std::regex pattern(label + R"(\D*? ([0-9.]+) ([kMG]?)B)");
  if (!std::regex_search(text, match, pattern)) {
    return std::nan("");
  }
  const std::string unit = match[2];
  const double factor = unit == "G" ? 1e9 : unit == "M" ? 1e6 : unit == "k" ? 1e3 : 1.0;
  return std::stod(match[1]) * factor;
}

TEST(Bench, MeasuresACycleForProgramsAndComparesTwo) {
  const TemporaryDirectory directory;
  const ProgramResult result = run_cycle({"--prompts", "16", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string file = directory.write("a.json", result.out);
  const JsonValue json = read_json_object(file);
  EXPECT_EQ(json.find_integer("verify_rows"), 8);
  EXPECT_GT(json.find_number("load_seconds").value_or(0.0), 0.0);
  std::vector<std::string> names;
  for (const JsonValue& row : *json.find_array("rows")) {
    names.push_back(*row.find_string("name"));
    EXPECT_GT(row.find_number("median_ms").value_or(0.0), 0.0) << names.back();
    EXPECT_GT(row.find_integer("floor_bytes").value_or(0), 0) << names.back();
    EXPECT_GT(row.find_number("floor_ratio").value_or(0.0), 0.0) << names.back();
  }
  for (const char* name : {"C_t", "C_v(8)", "C_d", "inject(4)", "first token", "prefill"}) {
    EXPECT_THAT(names, Contains(name));
  }
  const JsonValue& memory = *json.find("memory");
  EXPECT_LT(memory.find_number("drafter_bytes").value_or(0.0), 2e6) << "one copy";

  const ProgramResult same = run_octet({"bench", "cycle", "--compare", file, file});
  ASSERT_EQ(same.exit_code, 0) << same.err;
  EXPECT_THAT(same.out, AllOf(HasSubstr("C_v(8)"), HasSubstr("1.000"), Not(HasSubstr("differ"))));
  const ProgramResult other = run_octet({"bench", "cycle", "--compare", file, kPairTarget});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("bolt-tiny-q8_0.gguf"));
}

TEST(Bench, TellsPeopleWithAnotherProgramBesideIt) {
  const ProgramResult result = run_cycle(
      {"--prompt-rounds",
       "0",
       "--compare-command",
       "echo took 5 ms",
       "--compare-pattern",
       "took ([0-9]+) ms"}
  );
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("8 rows verified, 7 drafts"));
  EXPECT_THAT(result.out, HasSubstr("The other program: 5.0 ms"));
  EXPECT_THAT(result.out, HasSubstr("to the first token"));
  EXPECT_THAT(result.out, AllOf(Not(HasSubstr("inf")), Not(HasSubstr("nan"))));
  EXPECT_THAT(result.out, Not(HasSubstr("prefill"))) << "no rounds, no prompts";
}

TEST(Bench, RefusesAProgramThatFails) {
  const ProgramResult result =
      run_cycle({"--prompt-rounds", "0", "--compare-command", "echo 5; echo broken; exit 4"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, AllOf(HasSubstr("exit code 4: broken"), HasSubstr("--compare-command")));
}

// The program beside octet, with the flags as they were given; without one a sentence that says how
// to get it.
TEST(Bench, RunsTheProgramForSingleKernels) {
  const TemporaryDirectory directory;
  const std::string octet = directory.file("octet");
  std::filesystem::copy_file(OCTET_PROGRAM, octet);
  const auto run_ops = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"bench", "ops"});
    return run_program(octet, flags);
  };
  const ProgramResult missing = run_ops({"--benchmark_filter=Q4_K"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, AllOf(HasSubstr("octet-bench-ops"), HasSubstr("libbenchmark-dev")));
  const std::string script =
      directory.write("octet-bench-ops", "#!/bin/sh\nprintf '[%s]' \"$@\"\nexit 7\n");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const ProgramResult run = run_ops({"--benchmark_filter=Q4_K/8/", "--help", "-m"});
  EXPECT_EQ(run.exit_code, 7);
  EXPECT_EQ(run.out, "[--benchmark_filter=Q4_K/8/][--help][-m]");
}

TEST(Bench, TriesThePolicy) {
  const TemporaryDirectory directory;
  const std::string prompts = directory.write(
      "prompts.jsonl",
      "{\"turns\":[\"What is the capital of Finland?\"]}\n{\"turns\":[\"" + std::string(4000, 'x') +
          "\"]}\n"
  );
  const std::vector<std::string> short_trial = {
      "-c", "256", "-n", "8", "--rounds", "1", "--lengths", "2", "--prompts", prompts};
  const ProgramResult result = run_bench("policy", short_trial);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("2 drafts"), HasSubstr("adaptive takes")));
  EXPECT_THAT(result.out, AllOf(HasSubstr("1 thread"), HasSubstr("1 skipped")));
  EXPECT_THAT(result.out, HasSubstr("memory: weights"));
  EXPECT_THAT(result.out, HasSubstr("ms in all: a few drafts more or less are several percent"));
  std::vector<std::string> as_json = short_trial;
  as_json.emplace_back("--json");
  const JsonValue json =
      read_json_object(directory.write("r.json", run_bench("policy", as_json).out));
  EXPECT_EQ(json.find_integer("skipped"), 1);
  EXPECT_GT(json.find("memory")->find_integer("kv_bytes").value_or(0), 0);
  EXPECT_EQ(json.find_array("trials")->front().find_array("arms")->size(), 3U);
}

// Every way to decode keeps a text of its own, and the limits are measured in a buffer.
TEST(Bench, PlansForAllThatItHolds) {
  const std::vector<std::string> little = {"--memory-limit", "1M"};
  const ProgramResult verify = run_with_pair("verify", little);
  const ProgramResult policy = run_bench("policy", little);
  const ProgramResult cycle = run_cycle(little);
  for (const ProgramResult& result : {verify, policy, cycle}) {
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("--memory-limit"));
  }
  for (const char* part : {"K/V \\(bf16\\)", "draft context"}) {
    EXPECT_NEAR(figure_after(part, policy.err) / figure_after(part, verify.err), 7.0, 0.1) << part;
  }
  EXPECT_NEAR(figure_after("buffers", cycle.err), 512.0 * 1024 * 1024, 1e6);
  EXPECT_THAT(cycle.err, AllOf(HasSubstr("fewer positions (--contexts)")));
}

TEST(Bench, RefusesLongerTextsThanTheModelHas) {
  const ProgramResult result =
      run_octet({"bench", "cycle", "-m", kPairTarget, "--contexts", "16000000"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("16000000"), HasSubstr("--contexts")));
}

}  // namespace
}  // namespace octet::test
