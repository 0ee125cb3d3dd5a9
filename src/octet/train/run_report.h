// What people see of a training run: a line that moves with it, lines that stay, and a page of its
// curves. Not for figures: they come from training_run.h. Invariant: one line a validation and a
// few at the end stay on standard error; the page loads nothing.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "octet/train/training_run.h"

namespace octet::train {

/// "1:02:03", "4:05".
std::string clock_text(double seconds);
/// "12 of 300, loss 1.234, top-1 0.71 0.62 ..., 1900 tokens/s, 13:20 left".
std::string progress_text(const StepReport& report, const Pace& pace, int64_t steps);

struct ReportTexts {
  std::string title;
  std::string value_name;  // of validations, "mean acceptance length"
  std::vector<std::pair<std::string, std::string>> facts;
};

/// A self-contained HTML page.
std::string run_page(const TrainingRecord& record, const ReportTexts& texts);

/// About bad data, each told by place and cause: every one up to a few, then how many more.
std::string skipped_text(const std::vector<std::string>& skipped);

}  // namespace octet::train
