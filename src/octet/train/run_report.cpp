#include "octet/train/run_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "octet/cli/html_page.h"

namespace octet::train {
namespace {

std::string shares_text(const std::vector<double>& shares) {
  std::string text;
  for (const double share : shares) {
    text += fmt::format(" {:.2f}", share);
  }
  return text;
}

std::vector<cli::Curve> accuracy_curves(const TrainingRecord& record) {
  std::vector<cli::Curve> curves;
  for (size_t point = 0; point < record.accuracies.size(); ++point) {
    const std::vector<double>& accuracy = record.accuracies[point];
    for (size_t i = 0; i < accuracy.size(); ++i) {
      if (i >= curves.size()) {
        curves.push_back({fmt::format("place {}", i + 1), {}});
      }
      curves[i].values.push_back(accuracy[i]);
    }
  }
  return curves;
}

}  // namespace

std::string clock_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::max(seconds, 0.0)));
  const int64_t hours = whole / 3600;
  const int64_t minutes = whole / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60)
                   : fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string progress_text(const StepReport& report, const Pace& pace, int64_t steps) {
  std::string text =
      fmt::format("{} of {}, loss {:.3f}", report.step + 1, steps, report.sums.mean_loss());
  std::vector<double> accuracy;
  for (size_t i = 0; i < report.sums.judged.size(); ++i) {
    accuracy.push_back(report.sums.accuracy(i));
  }
  if (!accuracy.empty()) {
    text += ", top-1" + shares_text(accuracy);
  }
  return text +
         fmt::format(
             ", {:.0f} tokens/s, {} left", pace.tokens_per_second, clock_text(pace.seconds_left)
         );
}

std::string run_page(const TrainingRecord& record, const ReportTexts& texts) {
  std::vector<std::vector<std::string>> table = {{"what", "value"}};
  for (const auto& [name, value] : texts.facts) {
    table.push_back({name, value});
  }
  std::string body = cli::html_table(table);
  const std::string axis = fmt::format("steps, {} a point", record.steps_per_point);
  body += cli::html_plot("Loss", axis, {{"loss", record.losses}});
  const std::vector<cli::Curve> accuracy = accuracy_curves(record);
  if (!accuracy.empty()) {
    body += cli::html_plot("Likeliest token right, by place in the block", axis, accuracy);
  }
  if (!record.validations.empty()) {
    cli::Curve curve{texts.value_name, {}};
    std::vector<std::vector<std::string>> rows = {{"after step", texts.value_name, "by place"}};
    for (const Validation& validation : record.validations) {
      curve.values.push_back(validation.value);
      rows.push_back(
          {fmt::format("{}", validation.step),
           fmt::format("{:.3f}", validation.value),
           shares_text(validation.by_position)}
      );
    }
    body += cli::html_plot("Validation", "validations", {curve}) + cli::html_table(rows);
  }
  return cli::html_page(texts.title, texts.title, body);
}

std::string skipped_text(const std::vector<std::string>& skipped) {
  constexpr size_t kShown = 10;
  std::string text;
  for (size_t i = 0; i < std::min(skipped.size(), kShown); ++i) {
    text += skipped[i] + "; skipped\n";
  }
  if (skipped.size() > kShown) {
    text += fmt::format("{} more were skipped\n", skipped.size() - kShown);
  }
  return text;
}

}  // namespace octet::train
