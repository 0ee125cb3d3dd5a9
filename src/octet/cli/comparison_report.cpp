#include "octet/cli/comparison_report.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "octet/cli/html_page.h"
#include "octet/cli/json_writer.h"

namespace octet::cli {
namespace {

constexpr std::array<double, 4> kQuantiles = {0.5, 0.9, 0.99, 1.0};

using Line = std::pair<std::string, std::string>;

std::vector<Line> target_lines(const TargetComparison& found) {
  std::vector<Line> lines = {
      {"rows", fmt::format("{}", found.rows)},
      {"mean KL divergence", fmt::format("{:.6f} nats", found.mean_kl)}};
  for (const double quantile : kQuantiles) {
    lines.emplace_back(
        fmt::format("KL at {:.0f} %", 100.0 * quantile),
        fmt::format("{:.6f} nats", found.kl_quantile(quantile))
    );
  }
  lines.emplace_back("same best token", fmt::format("{:.2f} %", 100.0 * found.top1_agreement));
  lines.emplace_back(
      "perplexity",
      fmt::format("{:.4f} and {:.4f}", found.perplexity_first, found.perplexity_second)
  );
  lines.emplace_back("RMS of logit differences", fmt::format("{:.5f}", found.logit_rms));
  for (size_t layer = 0; layer < found.layer_errors.size(); ++layer) {
    lines.emplace_back(
        fmt::format("error after layer {}", layer),
        fmt::format("{:.3f} %", 100.0 * found.layer_errors[layer])
    );
  }
  return lines;
}

std::vector<Line> drafter_lines(const ComparisonReport& report) {
  std::vector<Line> lines;
  for (const DrafterFigures& drafter : report.drafters) {
    std::string rows;
    for (int k = 0; k < drafter.statistics.rows(); ++k) {
      rows += fmt::format(" {:.2f}", drafter.statistics.joint(k));
    }
    lines.emplace_back(
        drafter.path,
        fmt::format(
            "acceptance length {:.3f} over {} steps; by position{}",
            drafter.statistics.mean_acceptance_length(),
            drafter.statistics.steps,
            rows
        )
    );
  }
  lines.emplace_back("loss", fmt::format("{:.2f} %", report.acceptance_loss()));
  return lines;
}

std::vector<Line> report_lines(const ComparisonReport& report) {
  std::vector<Line> lines = report.targets ? target_lines(*report.targets) : drafter_lines(report);
  for (const JudgedLimit& limit : report.limits) {
    lines.emplace_back(
        limit.flag,
        fmt::format(
            "{:g}: found {:.6g}, {}", limit.limit, limit.found, limit.kept ? "kept" : "exceeded"
        )
    );
  }
  return lines;
}

std::string target_plots(const TargetComparison& found) {
  constexpr int kPoints = 200;
  Curve kl{"KL divergence, nats", {}};
  for (int i = 0; i <= kPoints; ++i) {
    kl.values.push_back(found.kl_quantile(static_cast<double>(i) / kPoints));
  }
  Curve errors{"RMS error over RMS", {}};
  errors.values = found.layer_errors;
  return html_plot("KL divergence by share of rows", "share of rows, 0 to 1", {kl}) +
         html_plot("Error of layer outputs", "layer", {errors});
}

std::string drafter_plots(const ComparisonReport& report) {
  std::vector<Curve> curves;
  for (const DrafterFigures& drafter : report.drafters) {
    Curve curve{drafter.path, {}};
    for (int k = 0; k < drafter.statistics.rows(); ++k) {
      curve.values.push_back(drafter.statistics.joint(k));
    }
    curves.push_back(std::move(curve));
  }
  return html_plot(
      "Share of steps that accept at least so many drafts", "drafts, 1 and up", curves
  );
}

void write_target(JsonWriter& json, const TargetComparison& found) {
  json.member("rows", found.rows).member("mean_kl", found.mean_kl);
  json.key("kl_quantiles").begin_object();
  for (const double quantile : kQuantiles) {
    json.member(fmt::format("{:g}", quantile), found.kl_quantile(quantile));
  }
  json.end_object();
  json.member("top1_agreement", found.top1_agreement);
  json.member("perplexity_first", found.perplexity_first);
  json.member("perplexity_second", found.perplexity_second);
  json.member("logit_rms", found.logit_rms).key("layer_errors").begin_array();
  for (const double error : found.layer_errors) {
    json.value(error);
  }
  json.end_array();
}

void write_drafters(JsonWriter& json, const ComparisonReport& report) {
  json.key("drafters").begin_array();
  for (const DrafterFigures& drafter : report.drafters) {
    json.begin_object().member("path", drafter.path);
    json.member("acceptance_length", drafter.statistics.mean_acceptance_length());
    json.member("steps", drafter.statistics.steps).key("by_position").begin_array();
    for (int k = 0; k < drafter.statistics.rows(); ++k) {
      json.value(drafter.statistics.joint(k));
    }
    json.end_array().end_object();
  }
  json.end_array().member("acceptance_loss_percent", report.acceptance_loss());
}

}  // namespace

bool ComparisonReport::passed() const {
  return std::all_of(limits.begin(), limits.end(), [](const JudgedLimit& l) { return l.kept; });
}

double ComparisonReport::acceptance_loss() const {
  const double before = drafters.at(0).statistics.mean_acceptance_length();
  const double after = drafters.at(1).statistics.mean_acceptance_length();
  return 100.0 * (1.0 - after / before);
}

std::string comparison_table(const ComparisonReport& report) {
  std::string text = fmt::format("{}\n{}\n", report.first, report.second);
  for (const auto& [name, value] : report_lines(report)) {
    text += fmt::format("  {:<26} {}\n", name, value);
  }
  return text;
}

std::string comparison_json(const ComparisonReport& report) {
  JsonWriter json;
  json.begin_object().member("first", report.first).member("second", report.second);
  if (report.targets) {
    write_target(json, *report.targets);
  } else {
    write_drafters(json, report);
  }
  json.key("limits").begin_array();
  for (const JudgedLimit& limit : report.limits) {
    json.begin_object().member("flag", limit.flag).member("limit", limit.limit);
    json.member("found", limit.found).member("kept", limit.kept).end_object();
  }
  json.end_array().member("passed", report.passed()).end_object();
  return json.text();
}

std::string comparison_html(const ComparisonReport& report) {
  std::vector<std::vector<std::string>> rows = {{"figure", ""}};
  for (const auto& [name, value] : report_lines(report)) {
    rows.push_back({name, value});
  }
  return html_page(
      "octet compare",
      fmt::format("{} against {}", report.second, report.first),
      (report.targets ? target_plots(*report.targets) : drafter_plots(report)) +
          "<h2>Figures</h2>\n" + html_table(rows)
  );
}

}  // namespace octet::cli
