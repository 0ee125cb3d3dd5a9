// What people see while a checkpoint is written and after: progress with rate and time left, and
// which types the tensors got. Not for writing. Invariant: figures are those of the plan that was
// written.
#pragma once

#include <chrono>
#include <string>

#include "octet/cli/terminal.h"
#include "octet/quantize/checkpoint_plan.h"

namespace octet::cli {

class ExportReport {
 public:
  enum class Speech { kSpeak, kQuiet };

  explicit ExportReport(Speech speech);

  /// Shows progress on standard error, a few times a second.
  OnExportProgress on_progress();

  /// Prints types, sizes and rate.
  void print_summary(const CheckpointPlan& plan, const std::string& output);

 private:
  void show(const ExportProgress& at);

  using Clock = std::chrono::steady_clock;

  bool speaks_;
  Progress progress_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_;
};

}  // namespace octet::cli
