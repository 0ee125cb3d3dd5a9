// The counters under their settled names, and the files in deploy/ that look for them.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "octet/serve/metrics.h"

namespace octet::serve {
namespace {

double value_of(const std::string& text, const std::string& name) {
  const size_t line = text.find("\n" + name + " ");
  EXPECT_NE(line, std::string::npos) << name;
  return line == std::string::npos ? -1.0 : std::stod(text.substr(line + name.size() + 2));
}

TEST(ServeMetrics, CountDraftsAsOthersDo) {
  Metrics metrics(7);
  EngineStep step;
  SequenceStep drafted;
  drafted.rows = 8;
  drafted.drafted = 7;
  drafted.accepted = 3;
  drafted.published = 4;
  SequenceStep plain;
  plain.rows = 1;
  plain.published = 1;
  step.sequences = {drafted, plain};
  step.decoding = 2;
  step.tokens = 5;
  metrics.on_step(step);
  const std::string text = metrics.text({}, 0);
  EXPECT_EQ(value_of(text, "octet:spec_decode_num_drafts_total"), 1.0);
  EXPECT_EQ(value_of(text, "octet:spec_decode_num_draft_tokens_total"), 7.0);
  EXPECT_EQ(value_of(text, "octet:spec_decode_num_accepted_tokens_total"), 3.0);
  const std::string position = "octet:spec_decode_num_accepted_tokens_per_pos_total{position=\"";
  EXPECT_EQ(value_of(text, position + "2\"}"), 1.0);
  EXPECT_EQ(value_of(text, position + "3\"}"), 0.0);
  EXPECT_EQ(value_of(text, "octet:generation_tokens_total"), 5.0);
  EXPECT_EQ(value_of(text, "octet:draft_length"), 3.5);
}

TEST(ServeMetrics, WhatAGrammarForcesIsNoDraft) {
  Metrics metrics(7);
  EngineStep step;
  SequenceStep forced;
  forced.rows = 5;
  forced.drafted = 4;
  forced.forced = 4;
  forced.accepted = 4;
  forced.published = 5;
  step.sequences = {forced};
  metrics.on_step(step);
  const std::string text = metrics.text({}, 0);
  EXPECT_EQ(value_of(text, "octet:spec_decode_num_drafts_total"), 0.0);
  EXPECT_EQ(value_of(text, "octet:spec_decode_num_accepted_tokens_total"), 0.0);
  EXPECT_EQ(value_of(text, "octet:forced_tokens_total"), 4.0);
}

TEST(ServeMetrics, TellTheBreakEven) {
  Metrics metrics(7);
  EngineStatus status;
  status.plain_step_ms = 2.0;
  status.block_step_ms = 3.0;
  status.draft_ms = 1.0;
  EXPECT_EQ(value_of(metrics.text(status, 0), "octet:break_even_acceptance_length"), 2.0);
}

TEST(ServeMetrics, EveryNameInTheDeployFilesExists) {
  const std::string text = Metrics(7).text({}, 0);
  std::set<std::string> known;
  const std::regex name("octet:[a-z0-9_]+");
  for (std::sregex_iterator match(text.begin(), text.end(), name), end; match != end; ++match) {
    known.insert(match->str());
  }
  int64_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(OCTET_SOURCE_DIR "/deploy")) {
    std::ifstream file(entry.path());
    const std::string content{std::istreambuf_iterator<char>(file), {}};
    for (std::sregex_iterator match(content.begin(), content.end(), name), end; match != end;
         ++match) {
      EXPECT_TRUE(known.contains(match->str())) << entry.path() << ": " << match->str();
      ++found;
    }
  }
  EXPECT_GT(found, 15);
}

}  // namespace
}  // namespace octet::serve
