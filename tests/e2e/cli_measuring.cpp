// `octet imatrix` and `octet compare` as a user runs them, with the shipped pair.

#include <cstdlib>
#include <filesystem>
#include <string>
#include <sys/wait.h>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/formats/json_value.h"
#include "octet/quantize/importance.h"
#include "support/golden_files.h"
#include "support/importance_seeds.h"
#include "support/quantize_runs.h"
#include "support/run_program.h"

namespace octet::test {
namespace {

const std::string kText =
    "<|turn>user\nWhat is the capital of Finland?<turn|>\n<|turn>model\nThe capital of Finland is "
    "Helsinki.<turn|>\nOnce upon a time there was a mouse who lived near the market.\n";

TEST(Imatrix, CollectsFromTextAndRolloutsAndHelpsQuantizing) {
  const TemporaryDirectory directory;
  const std::string text = directory.write("text.txt", kText);
  const std::string importance = directory.file("i.gguf");
  ProgramResult result = run_octet(
      {"imatrix", "-m", kPairTarget, "-f", text, "--chunk", "16", "-o", importance, "-t", "1"}
  );
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const ImportanceMatrix matrix = read_importance(importance);
  EXPECT_TRUE(matrix.entries.contains("blk.0.attn_v.weight"));
  EXPECT_FALSE(matrix.entries.contains("blk.5.attn_v.weight")) << "it reads another layer's";
  EXPECT_THAT(matrix.datasets, testing::ElementsAre("text.txt"));

  const std::string more = directory.file("more.gguf");
  result = run_octet(
      {"imatrix",
       "-m",
       kPairTarget,
       "--rollouts",
       "2",
       "-n",
       "8",
       "--add-to",
       importance,
       "-o",
       more,
       "-t",
       "1"}
  );
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GT(
      read_importance(more).entries.at("blk.0.attn_v.weight").count,
      matrix.entries.at("blk.0.attn_v.weight").count
  );
  result = run_octet(
      {"quantize",
       kPairTarget,
       directory.file("q.gguf"),
       "--type",
       "Q4_K_M",
       "--imatrix",
       more,
       "-t",
       "1"}
  );
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, testing::HasSubstr("have no importance"));
  EXPECT_EQ(run_octet({"imatrix", "-m", kPairTarget, "-o", directory.file("x")}).exit_code, 2);
  // Of another model: told before anything runs.
  const std::string foreign = directory.write("foreign", legacy_importance());
  result = run_octet(
      {"imatrix", "-m", kPairTarget, "-f", text, "--add-to", foreign, "-o", directory.file("x")}
  );
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, testing::HasSubstr("belongs to another model"));
  EXPECT_THAT(result.err, testing::Not(testing::HasSubstr("Chunk")));
  for (const char* flag : {"--prompts", "-n", "-s"}) {
    result =
        run_octet({"imatrix", "-m", kPairTarget, "-f", text, "-o", directory.file("x"), flag, "1"});
    EXPECT_EQ(result.exit_code, 2) << flag;
    EXPECT_THAT(result.err, testing::HasSubstr("--rollouts")) << flag;
  }
}

/// The shipped target against `judged`, on one thread (tests share the machine).
ProgramResult judge_target(
    const std::string& judged, const std::string& text, const std::vector<std::string>& more
) {
  std::vector<std::string> command = {"compare", kPairTarget, judged, "-f", text, "-t", "1"};
  command.insert(command.end(), more.begin(), more.end());
  return run_octet(command);
}

TEST(Compare, JudgesTargetsByTheirLogits) {
  const TemporaryDirectory directory;
  const std::string text = directory.write("text.txt", kText);
  const std::string coarse = directory.file("q4.gguf");
  ASSERT_EQ(
      run_octet({"quantize", kPairTarget, coarse, "--type", "Q4_0", "-q", "-t", "1"}).exit_code, 0
  );
  const ProgramResult same = judge_target(kPairTarget, text, {"--max-kl", "0", "--json"});
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_EQ(parse_json(bytes_of(same.out)).find_number("mean_kl"), 0.0);
  EXPECT_EQ(parse_json(bytes_of(same.out)).find_number("top1_agreement"), 1.0);

  const std::string page = directory.file("report.html");
  const ProgramResult other = judge_target(coarse, text, {"--max-kl", "0.000001", "--html", page});
  EXPECT_EQ(other.exit_code, 1) << other.err;
  EXPECT_THAT(other.out, testing::HasSubstr("exceeded"));
  EXPECT_THAT(other.out, testing::HasSubstr("error after layer 5"));
  EXPECT_THAT(read_text(page), testing::HasSubstr("<svg"));
  // Of a text that it does not know the two think differently.
  const std::string foreign = OCTET_SOURCE_DIR "/README.md";
  for (const auto& [limit, code] : {std::pair("0.5", 0), std::pair("1", 1)}) {
    const ProgramResult judged =
        judge_target(coarse, foreign, {"--chunks", "1", "--min-agreement", limit});
    EXPECT_EQ(judged.exit_code, code) << limit << judged.out << judged.err;
  }
  EXPECT_EQ(run_octet({"compare", kPairTarget, coarse}).exit_code, 2) << "there is no text";
  const std::vector<std::vector<std::string>> idle = {
      {"--target", kPairTarget},
      {"--prompts", text},
      {"--limit", "1", "--prompts", text},
      {"-n", "128"},
      {"--max-acceptance-loss", "5"}};
  for (const std::vector<std::string>& flag : idle) {
    const ProgramResult refused = judge_target(coarse, text, flag);
    EXPECT_EQ(refused.exit_code, 2) << flag.front();
    EXPECT_THAT(refused.err, testing::HasSubstr("for drafters, and these are targets"));
  }
  EXPECT_EQ(judge_target(kPairDrafter, text, {}).exit_code, 2);
}

TEST(Compare, JudgesDraftersByTheirAcceptance) {
  const TemporaryDirectory directory;
  const std::string coarse = directory.file("q4_1.gguf");
  ASSERT_EQ(
      run_octet({"quantize", kPairDrafter, coarse, "--type", "drafter-q4_1", "-q", "-t", "1"})
          .exit_code,
      0
  );
  const ProgramResult result = judge_drafter(
      kPairDrafter, kPairDrafter, {"-n", "32", "--max-acceptance-loss", "0", "--json"}
  );
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const JsonValue json = parse_json(bytes_of(result.out));
  EXPECT_EQ(json.find_number("acceptance_loss_percent"), 0.0);
  EXPECT_GT((*json.find_array("drafters"))[0].find_number("acceptance_length").value(), 1.0);
  const std::string page = directory.file("page.html");
  const ProgramResult report =
      judge_drafter(kPairDrafter, coarse, {"-n", "16", "--json", "--html", page});
  ASSERT_EQ(report.exit_code, 0) << report.err;
  const std::string html = read_text(page);
  EXPECT_THAT(html, testing::HasSubstr("<svg"));
  const JsonValue figures = parse_json(bytes_of(report.out));
  ASSERT_EQ(figures.find_array("drafters")->size(), 2U);
  for (const JsonValue& drafter : *figures.find_array("drafters")) {
    const JsonArray& shares = *drafter.find_array("by_position");
    ASSERT_EQ(shares.size(), 7U) << "a block of eight has seven drafts";
    double length = 1.0;  // of a step: its own token, and every draft as often as it is accepted
    double before = 1.0;
    std::string text;
    for (const JsonValue& share : shares) {
      EXPECT_TRUE(share.number() >= 0.0 && share.number() <= before);
      before = share.number().value();
      length += before;
      text += fmt::format(" {:.2f}", before);
    }
    EXPECT_NEAR(drafter.find_number("acceptance_length").value(), length, 1e-6);
    EXPECT_THAT(
        html,
        testing::AllOf(
            testing::HasSubstr(*drafter.find_string("path")),
            testing::HasSubstr(fmt::format(
                "acceptance length {:.3f} over {} steps; by position{}",
                length,
                drafter.find_integer("steps").value(),
                text
            ))
        )
    );
  }
  const std::vector<std::vector<std::string>> idle = {
      {"-f", coarse},
      {"--chunk", "512"},
      {"--chunks", "1"},
      {"--max-kl", "1"},
      {"--min-agreement", "0"}};
  for (const std::vector<std::string>& flag : idle) {
    const ProgramResult refused = judge_drafter(kPairDrafter, coarse, flag);
    EXPECT_EQ(refused.exit_code, 2) << flag.front();
    EXPECT_THAT(refused.err, testing::HasSubstr("for targets, and these are drafters"));
  }
}

TEST(Compare, RefusesAPageInPlaceOfAnInputAndKeepsFiguresWhereThereIsNoRoomForIt) {
  const TemporaryDirectory directory;
  const std::string text = directory.write("text.txt", kText);
  const std::string model = directory.file("model.gguf");
  std::filesystem::copy_file(kPairTarget, model);
  const auto compare = [&](const std::string& page) {
    return run_octet({"compare", model, kPairTarget, "-f", text, "--html", page, "-t", "1"});
  };
  for (const std::string& page : {model, text, directory.path(), directory.file("no/where")}) {
    const ProgramResult result = compare(page);
    EXPECT_EQ(result.exit_code, 2) << page;
    EXPECT_EQ(result.out, "") << "it is refused before anything is measured";
  }
  EXPECT_EQ(read_text(text), kText);
  EXPECT_TRUE(read_text(model) == read_text(kPairTarget));
  // What goes wrong later costs the page alone.
  const std::string out = directory.file("out");
  const std::string command = fmt::format(
      "trap '' XFSZ; ulimit -f 4; {} compare {} {} -f {} --html {} -t 1 >{} 2>/dev/null",
      shell_quoted(OCTET_PROGRAM),
      shell_quoted(kPairTarget),
      shell_quoted(kPairTarget),
      shell_quoted(text),
      shell_quoted(directory.file("page.html")),
      shell_quoted(out)
  );
  const int status = std::system(command.c_str());  // NOLINT(concurrency-mt-unsafe): one thread
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2);
  EXPECT_FALSE(exists(directory.file("page.html")));
  EXPECT_THAT(read_text(out), testing::HasSubstr("mean KL divergence"));
}

TEST(Compare, WithoutAStepThereIsNothingToJudge) {
  const ProgramResult result =
      judge_drafter(kPairDrafter, kPairDrafter, {"-n", "1", "--max-acceptance-loss", "0"});
  EXPECT_EQ(result.exit_code, 2) << result.out;
  EXPECT_THAT(result.err, testing::HasSubstr("no step was drafted"));
}

TEST(Compare, FailsADrafterThatLosesMoreThanIsAllowed) {
  const TemporaryDirectory directory;
  const std::string worse = directory.file("worse.gguf");
  // Fusion in four bits of the coarsest kind costs acceptance.
  ASSERT_EQ(
      run_octet({"quantize", kPairDrafter, worse, "--type", "MXFP4", "-q", "-t", "1"}).exit_code, 0
  );
  const auto judge = [&](const char* limit) {
    return judge_drafter(
        kPairDrafter, worse, {"-n", "48", "--max-acceptance-loss", limit, "--json"}
    );
  };
  const ProgramResult strict = judge("0");
  EXPECT_EQ(strict.exit_code, 1) << strict.out << strict.err;
  EXPECT_GT(parse_json(bytes_of(strict.out)).find_number("acceptance_loss_percent").value(), 0.0);
  EXPECT_EQ(judge("100").exit_code, 0);
}

}  // namespace
}  // namespace octet::test
