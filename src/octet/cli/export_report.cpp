#include "octet/cli/export_report.h"

#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "octet/quantize/transcoder.h"

namespace octet::cli {
namespace {

constexpr std::chrono::milliseconds kShowEvery{200};

std::string time_text(double seconds) {
  if (seconds < 60.0) {
    return fmt::format("{:.0f} s", seconds);
  }
  const auto whole = static_cast<int64_t>(seconds);
  return fmt::format("{} min {:02} s", whole / 60, whole % 60);
}

struct TypeTotals {
  int64_t tensors = 0;
  int64_t bytes = 0;
  int64_t fallbacks = 0;
};

}  // namespace

ExportReport::ExportReport(Speech speech) : speaks_(speech == Speech::kSpeak), progress_(speaks_) {}

OnExportProgress ExportReport::on_progress() {
  return [this](const ExportProgress& at) { show(at); };
}

void ExportReport::show(const ExportProgress& at) {
  const Clock::time_point now = Clock::now();
  if (now - shown_ < kShowEvery && at.done_bytes < at.total_bytes) {
    return;
  }
  shown_ = now;
  const double seconds = std::max(std::chrono::duration<double>(now - start_).count(), 1e-3);
  const double rate = static_cast<double>(at.done_bytes) / seconds;
  const double left = static_cast<double>(at.total_bytes - at.done_bytes) / std::max(rate, 1.0);
  progress_.show(fmt::format(
      "{} of {}, {}/s, {} left: {}",
      format_bytes(at.done_bytes),
      format_bytes(at.total_bytes),
      format_bytes(static_cast<int64_t>(rate)),
      time_text(left),
      at.tensor
  ));
}

void ExportReport::print_summary(const CheckpointPlan& plan, const std::string& output) {
  progress_.clear();
  if (!speaks_) {
    return;
  }
  const double seconds =
      std::max(std::chrono::duration<double>(Clock::now() - start_).count(), 1e-3);
  std::map<std::string_view, TypeTotals> types;
  int64_t source_bytes = 0;
  int64_t rounded = 0;
  for (const PlannedTensor& planned : plan) {
    TypeTotals& totals = types[dtype_facts(planned.dtype).name];
    ++totals.tensors;
    totals.bytes += planned_bytes(planned);
    totals.fallbacks += planned.fallback ? 1 : 0;
    source_bytes += static_cast<int64_t>(planned.source->data.size());
    rounded +=
        is_exact_copy(*planned.source, planned.dtype) || planned.source->shape.size() < 2 ? 0 : 1;
  }
  fmt::print("{}: {} in {:.1f} s", output, format_bytes(planned_bytes(plan)), seconds);
  fmt::print(
      ", {}/s of input\n",
      format_bytes(static_cast<int64_t>(static_cast<double>(source_bytes) / seconds))
  );
  for (const auto& [name, totals] : types) {
    fmt::print("  {:<15} {:>5} tensors  {:>10}", name, totals.tensors, format_bytes(totals.bytes));
    fmt::print(
        "{}\n",
        totals.fallbacks > 0
            ? fmt::format("  ({} stand in where rows are not whole blocks)", totals.fallbacks)
            : ""
    );
  }
  fmt::print(
      "  {}\n",
      rounded == 0 ? "every value as in the source" : fmt::format("{} tensors rounded", rounded)
  );
}

}  // namespace octet::cli
