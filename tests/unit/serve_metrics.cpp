// The counters under their settled names, and the files in deploy/ that look for them.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "octet/serve/metrics.h"
#include "octet/serve/server.h"

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

std::string whole_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ServeMetrics, CountRepliesByTheirReports) {
  Metrics metrics(7);
  ReplyReport report;
  report.started = true;
  report.finish = FinishReason::kStopString;
  report.prompt_tokens = 40;
  report.reused_tokens = 30;
  report.queue_ms = 15.0;
  report.first_token_ms = 250.0;
  report.total_ms = 900.0;
  report.between_tokens_ms = {4.0, 4.0, 40.0};
  report.acceptance.steps = 2;
  report.acceptance.drafted = 4;
  report.acceptance.accepted = 2;
  report.acceptance.drafting[2][1] = 2;
  metrics.on_reply(report);
  ReplyReport waited;  // cancelled before it started
  waited.finish = FinishReason::kCancelled;
  waited.prompt_tokens = 100;
  waited.queue_ms = waited.total_ms = 3000.0;
  metrics.on_reply(waited);
  const std::string text = metrics.text({}, 0);
  const auto is = [&](const std::string& name, double expected) {
    EXPECT_EQ(value_of(text, "octet:" + name), expected) << name;
  };
  is("request_success_total{finished_reason=\"stop_string\"}", 1.0);
  is("request_success_total{finished_reason=\"cancelled\"}", 1.0);
  is("request_success_total{finished_reason=\"length\"}", 0.0);
  is("prompt_tokens_total", 40.0);
  is("prefix_cache_queries_total", 40.0);
  is("prefix_cache_hits_total", 30.0);
  is("request_queue_time_seconds_count", 2.0);
  is("request_queue_time_seconds_bucket{le=\"0.02\"}", 1.0);
  is("request_queue_time_seconds_bucket{le=\"5\"}", 2.0);
  is("time_to_first_token_seconds_count", 1.0);
  is("time_to_first_token_seconds_bucket{le=\"0.2\"}", 0.0);
  is("time_to_first_token_seconds_bucket{le=\"0.3\"}", 1.0);
  is("inter_token_latency_seconds_count", 3.0);
  is("inter_token_latency_seconds_bucket{le=\"0.005\"}", 2.0);
  is("e2e_request_latency_seconds_count", 2.0);
  is("request_acceptance_length_count", 1.0);
  is("request_acceptance_length_bucket{le=\"1.5\"}", 0.0);
  is("request_acceptance_length_bucket{le=\"2\"}", 1.0);
}

TEST(ServeMetrics, TheDashboardIsOne) {
  const auto board =
      nlohmann::json::parse(whole_file(OCTET_SOURCE_DIR "/deploy/grafana-octet.json"));
  EXPECT_FALSE(board.at("title").get<std::string>().empty());
  std::set<int64_t> ids;
  int64_t queries = 0;
  for (const auto& panel : board.at("panels")) {
    EXPECT_TRUE(ids.insert(panel.value("id", int64_t{-1})).second) << panel.at("title");
    EXPECT_GT(panel.at("gridPos").at("w").get<int>(), 0);
    for (const auto& target : panel.value("targets", nlohmann::json::array())) {
      EXPECT_NE(target.at("expr").get<std::string>().find("octet:"), std::string::npos);
      ++queries;
    }
  }
  EXPECT_GT(queries, 8);
}

TEST(ServeMetrics, PrometheusLooksWhereTheServerAnswers) {
  const std::string config = whole_file(OCTET_SOURCE_DIR "/deploy/prometheus.yml");
  std::smatch match;
  ASSERT_TRUE(std::regex_search(config, match, std::regex("\n *metrics_path: *(\\S+)")));
  const std::string server = whole_file(OCTET_SOURCE_DIR "/src/octet/serve/server.cpp");
  EXPECT_NE(server.find("{\"" + match[1].str() + "\", {\"GET\""), std::string::npos);
  ASSERT_TRUE(std::regex_search(config, match, std::regex("targets: *\\[\"127.0.0.1:(\\d+)\"")));
  const std::string port = std::to_string(ServerOptions().port);
  EXPECT_EQ(match[1].str(), port);
  const std::string compose = whole_file(OCTET_SOURCE_DIR "/deploy/compose.yaml");
  EXPECT_NE(compose.find("\"127.0.0.1:" + port + ":" + port + "\""), std::string::npos);
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
