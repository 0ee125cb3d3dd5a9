#include "octet/cli/bench_report.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "octet/cli/json_writer.h"
#include "octet/cli/terminal.h"

namespace octet::cli {
namespace {

/// Acceptance lengths that speedups are stated for; 3.83 is the published figure of the pair.
constexpr std::array<double, 3> kAcceptanceLengths = {3.0, 3.83, 5.0};
constexpr double kShareShown =
    0.01;  // operations below this share of a pass are summed up as "other"

MachineLimits median_limits(const CycleReport& report) {
  std::vector<double> read;
  std::vector<double> int8;
  std::vector<double> bf16;
  std::vector<double> floats;
  for (const MachineLimits& limits : report.limits) {
    read.push_back(limits.read_bytes_per_s);
    int8.push_back(limits.int8_operations_per_s);
    bf16.push_back(limits.bf16_operations_per_s);
    floats.push_back(limits.float_operations_per_s);
  }
  return {
      .read_bytes_per_s = median(std::move(read)),
      .read_streams = report.limits.empty() ? 0 : report.limits.back().read_streams,
      .int8_operations_per_s = median(std::move(int8)),
      .bf16_operations_per_s = median(std::move(bf16)),
      .float_operations_per_s = median(std::move(floats))};
}

std::vector<int64_t> contexts_of(const CycleReport& report) {
  std::vector<int64_t> contexts;
  for (const CycleRow& row : report.rows) {
    if (row.name == "C_t") {
      contexts.push_back(row.context);
    }
  }
  return contexts;
}

double rows_per_second(const CycleRow& row, double ms) {
  return ms > 0.0 ? 1000.0 * static_cast<double>(row.rows) / ms : 0.0;
}

/// Tokens a second that drafting gives at an acceptance length.
double tokens_per_second(const CycleReport& report, double acceptance_length, int64_t context) {
  const CycleRow* plain = report.find("C_t", context);
  return plain != nullptr && plain->median_ms() > 0.0
             ? report.speedup(acceptance_length, context) * 1000.0 / plain->median_ms()
             : 0.0;
}

/// The acceptance length from which on drafting pays; 0 without a drafter.
double break_even(const CycleReport& report, int64_t context) {
  const double speedup = report.speedup(1.0, context);
  return speedup > 0.0 ? 1.0 / speedup : 0.0;
}

/// From the start of loading to the first token of a short prompt; 0 where none was measured.
double first_token_seconds(const BenchHeading& heading, const CycleReport& report) {
  const auto first = std::find_if(report.rows.begin(), report.rows.end(), [](const CycleRow& row) {
    return row.name == "first token";
  });
  return first != report.rows.end() ? heading.load_seconds + first->first_ms / 1000.0 : 0.0;
}

void append_rows(std::string& out, const CycleReport& report) {
  auto line = std::back_inserter(out);
  fmt::format_to(
      line,
      "\n{:<12} {:>8} {:>6} {:>10} {:>10} {:>10} {:>8} {:>8}\n",
      "quantity",
      "context",
      "rows",
      "median ms",
      "best ms",
      "floor ms",
      "/ floor",
      "/ C_t"
  );
  for (const CycleRow& row : report.rows) {
    const double ratio = report.ratio_to_plain(row.name, row.context);
    const double floor_ratio = row.median_floor_ratio();
    fmt::format_to(
        line,
        "{:<12} {:>8} {:>6} {:>10.2f} {:>10.2f} {:>10.2f} {:>8.2f} {:>8}\n",
        row.name,
        row.context,
        row.rows,
        row.median_ms(),
        row.best_ms(),
        floor_ratio > 0.0 ? row.median_ms() / floor_ratio : 0.0,
        floor_ratio,
        ratio > 0.0 ? fmt::format("{:.2f}", ratio) : "-"
    );
    if (row.name == "prefill") {
      fmt::format_to(
          line,
          "{:>21} tokens/s, {:.1f} in the first pass\n",
          fmt::format("{:.1f}", rows_per_second(row, row.median_ms())),
          rows_per_second(row, row.first_ms)
      );
    }
  }
}

void append_speedups(std::string& out, const CycleReport& report) {
  auto line = std::back_inserter(out);
  fmt::format_to(
      line,
      "\nWhat follows for drafting ({} rows verified, {} drafts):\n{:>8}",
      report.verify_rows,
      report.verify_rows - 1,
      "context"
  );
  for (const double tau : kAcceptanceLengths) {
    fmt::format_to(line, "  {:>26}", fmt::format("accepting {:.2f} a step", tau));
  }
  fmt::format_to(line, "  {:>10}\n", "break-even");
  for (const int64_t context : contexts_of(report)) {
    if (break_even(report, context) <= 0.0) {
      continue;
    }
    fmt::format_to(line, "{:>8}", context);
    for (const double tau : kAcceptanceLengths) {
      const double speedup = report.speedup(tau, context);
      const double rate = tokens_per_second(report, tau, context);
      fmt::format_to(line, "  {:>26}", fmt::format("{:.2f}x, {:.1f} tokens/s", speedup, rate));
    }
    fmt::format_to(line, "  {:>10.2f}\n", break_even(report, context));
  }
}

/// What a pass took, and where.
struct TimedProfile {
  std::string title;
  double pass_ms = 0.0;
  const ProfilingOps::Profile& profile;
};

void append_profile(std::string& out, const TimedProfile& pass) {
  double total = 0.0;
  for (const auto& [name, entry] : pass.profile) {
    total += entry.ms;
  }
  auto line = std::back_inserter(out);
  fmt::format_to(
      line, "\n{}: {:.2f} ms, {:.2f} ms of it in operations\n", pass.title, pass.pass_ms, total
  );
  std::vector<std::pair<std::string, ProfilingOps::Entry>> sorted(
      pass.profile.begin(), pass.profile.end()
  );
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.ms > b.second.ms;
  });
  double other = 0.0;
  for (const auto& [name, entry] : sorted) {
    if (entry.ms < kShareShown * total) {
      other += entry.ms;
      continue;
    }
    fmt::format_to(
        line,
        "  {:<18} {:>8.2f} ms {:>5.1f} % {:>6} calls{}\n",
        name,
        entry.ms,
        100.0 * entry.ms / total,
        entry.calls,
        entry.bytes > 0
            ? fmt::format("  {:.1f} GB/s", static_cast<double>(entry.bytes) / entry.ms / 1e6)
            : ""
    );
  }
  fmt::format_to(line, "  {:<18} {:>8.2f} ms\n", "other", other);
}

void append_profiles(std::string& out, const CycleReport& report) {
  for (const CycleRow& row : report.rows) {
    const bool prompt = row.name == "prefill";
    const bool verified = row.name == CycleReport::verify_name(report.verify_rows);
    if (!prompt && !verified && row.name != "C_t" && row.name != "C_d") {
      continue;
    }
    const std::string title = prompt ? fmt::format("{} of {} rows", row.name, row.rows)
                                     : fmt::format("{} at context {}", row.name, row.context);
    if (prompt) {
      append_profile(out, {title + ", first pass", row.first_ms, row.first_profile});
    }
    append_profile(out, {title, row.profile_ms, row.profile});
  }
}

void write_profile(JsonWriter& json, const ProfilingOps::Profile& profile) {
  json.begin_object();
  for (const auto& [name, entry] : profile) {
    json.key(name).begin_object();
    json.member("ms", entry.ms)
        .member("calls", entry.calls)
        .member("bytes", entry.bytes)
        .end_object();
  }
  json.end_object();
}

void write_row(JsonWriter& json, const CycleReport& report, const CycleRow& row) {
  json.begin_object();
  json.member("name", row.name).member("context", row.context).member("rows", row.rows);
  json.member("median_ms", row.median_ms()).member("best_ms", row.best_ms());
  if (row.name == "prefill") {
    json.member("tokens_per_s", rows_per_second(row, row.median_ms()));
    json.member("first_tokens_per_s", rows_per_second(row, row.first_ms));
  }
  json.member("floor_bytes", row.floor_bytes).member("int8_operations", row.int8_operations);
  json.member("float_operations", row.float_operations);
  json.member("floor_ratio", row.median_floor_ratio())
      .member("ratio_to_plain", report.ratio_to_plain(row.name, row.context));
  json.key("ms").begin_array();
  for (const double ms : row.ms) {
    json.value(ms);
  }
  json.end_array();
  json.member("first_ms", row.first_ms);
  json.key("first_profile");
  write_profile(json, row.first_profile);
  json.member("profile_ms", row.profile_ms);
  json.key("profile");
  write_profile(json, row.profile);
  json.end_object();
}

}  // namespace

std::string bench_table(const BenchHeading& heading, const CycleReport& report) {
  const MachineLimits limits = median_limits(report);
  std::string out = fmt::format(
      "target   {}\ndrafter  {}{}\nbackend  {}\nmachine  reads {:.1f} GB/s ({} streams a thread), "
      "int8 {:.0f} GOP/s, {}float32 "
      "{:.0f} GFLOP/s\nmemory   {}\nloading  {:.2f} s, {:.2f} s to the first token of a short "
      "prompt\n",
      heading.model,
      heading.draft_model.empty() ? "none" : heading.draft_model,
      heading.draft_head.empty() ? "" : fmt::format(", head of {}", heading.draft_head),
      heading.backend,
      limits.read_bytes_per_s / 1e9,
      limits.read_streams,
      limits.int8_operations_per_s / 1e9,
      limits.bf16_operations_per_s > 0.0
          ? fmt::format("bf16 {:.0f} GFLOP/s, ", limits.bf16_operations_per_s / 1e9)
          : "",
      limits.float_operations_per_s / 1e9,
      memory_text(heading.memory),
      heading.load_seconds,
      first_token_seconds(heading, report)
  );
  append_rows(out, report);
  append_speedups(out, report);
  if (!report.compare_ms.empty()) {
    std::vector<double> ratios;
    const CycleRow* plain = report.find("C_t", report.rows.front().context);
    for (size_t round = 0;
         plain != nullptr && round < std::min(plain->ms.size(), report.compare_ms.size());
         ++round) {
      ratios.push_back(report.compare_ms[round] / plain->ms[round]);
    }
    out += fmt::format(
        "\nThe other program: {:.1f} ms (median), {:.2f} times C_t of the same round\n",
        median(report.compare_ms),
        median(ratios)
    );
  }
  append_profiles(out, report);
  return out;
}

std::string bench_json(const BenchHeading& heading, const CycleReport& report) {
  const MachineLimits limits = median_limits(report);
  JsonWriter json;
  json.begin_object();
  json.member("model", heading.model)
      .member("draft_model", heading.draft_model)
      .member("draft_head", heading.draft_head)
      .member("backend", heading.backend)
      .member("activation", heading.activation)
      .member("load_seconds", heading.load_seconds)
      .member("first_token_seconds", first_token_seconds(heading, report));
  json.key("machine").begin_object();
  json.member("read_bytes_per_s", limits.read_bytes_per_s)
      .member("read_streams", limits.read_streams);
  json.member("int8_operations_per_s", limits.int8_operations_per_s);
  json.member("bf16_operations_per_s", limits.bf16_operations_per_s);
  json.member("float_operations_per_s", limits.float_operations_per_s).end_object();
  write_memory(json, heading.memory);
  json.member("verify_rows", report.verify_rows);
  json.key("rows").begin_array();
  for (const CycleRow& row : report.rows) {
    write_row(json, report, row);
  }
  json.end_array();
  json.key("speedups").begin_array();
  for (const int64_t context : contexts_of(report)) {
    for (const double tau : kAcceptanceLengths) {
      json.begin_object();
      json.member("context", context)
          .member("acceptance_length", tau)
          .member("speedup", report.speedup(tau, context))
          .member("tokens_per_s", tokens_per_second(report, tau, context))
          .member("break_even", break_even(report, context));
      json.end_object();
    }
  }
  json.end_array();
  json.key("compare_ms").begin_array();
  for (const double ms : report.compare_ms) {
    json.value(ms);
  }
  json.end_array().end_object();
  return json.text();
}

}  // namespace octet::cli
