#include "octet/cli/statistics.h"

#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "octet/cli/terminal.h"

namespace octet::cli {
namespace {

double ratio(double numerator, double denominator) {
  return denominator > 0.0 ? numerator / denominator : 0.0;
}

std::string_view finish_text(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStopToken:
      return "ended by the model";
    case FinishReason::kStopString:
      return "ended by a stop string";
    case FinishReason::kLength:
      return "ended by -n";
    case FinishReason::kContext:
      return "ended by the end of the context (-c)";
    case FinishReason::kCancelled:
      return "interrupted";
    case FinishReason::kDeadline:
      return "ended by its deadline";
    case FinishReason::kFailed:
      return "ended by an error";
    case FinishReason::kNone:
      break;
  }
  return "unfinished";
}

/// Decode steps only: prompt passes have a share of their own.
struct PerStep {
  double draft_ms;
  double forward_ms;
  double verify_ms;
  double commit_ms;
};

PerStep per_step(const Statistics& statistics) {
  const auto steps = static_cast<double>(statistics.acceptance.steps);
  const StepTimes& times = statistics.times.steps;
  return {
      ratio(times.draft_ms, steps),
      ratio(times.forward_ms, steps),
      ratio(times.verify_ms, steps),
      ratio(times.commit_ms, steps)};
}

void append_drafting(std::string& out, const Statistics& statistics, const SummaryNotes& notes) {
  const AcceptanceStatistics& acceptance = statistics.acceptance;
  if (!notes.undrafted_reason.empty()) {
    out += fmt::format("  drafting      off: {}\n", notes.undrafted_reason);
    return;
  }
  out += fmt::format(
      "  drafting      {:.2f} tokens a step over {} steps; mean acceptance length {:.2f}; {:.0f} % "
      "of {} drafts accepted\n",
      acceptance.tokens_per_step(),
      acceptance.steps,
      acceptance.mean_acceptance_length(),
      100.0 *
          ratio(static_cast<double>(acceptance.accepted), static_cast<double>(acceptance.drafted)),
      acceptance.drafted
  );
  std::vector<std::string> shares;
  shares.reserve(static_cast<size_t>(acceptance.rows()));
  for (int row = 0; row < acceptance.rows(); ++row) {
    shares.push_back(fmt::format("{:.2f}", acceptance.joint(row)));
  }
  out += fmt::format(
      "  by position   {} (share of steps that accept at least so many drafts)\n",
      fmt::join(shares, " ")
  );
}

void append_comparison(std::string& out, const SpeedComparison& comparison) {
  const double drafted = comparison.drafted_tokens_per_second();
  const double plain = comparison.plain_tokens_per_second();
  const double gain = ratio(drafted, plain);
  out += fmt::format(
      "  against plain {:.1f} tokens/s drafted, {:.1f} plain: {:.2f} times as fast ({} rounds in "
      "turn, {})\n",
      drafted,
      plain,
      gain,
      comparison.rounds,
      comparison.identical ? "same text" : "DIFFERENT TEXT"
  );
  constexpr double kNoise = 0.02;
  if (gain > 1.0 + kNoise) {
    out += "                drafting pays here\n";
    return;
  }
  const double drafted_step =
      ratio(comparison.drafted_ms, static_cast<double>(comparison.drafted_steps));
  const double plain_step = ratio(comparison.plain_ms, static_cast<double>(comparison.plain_steps));
  out += fmt::format(
      "                drafting does not pay here{}: a drafted run's step costs {:.1f} plain ones "
      "and gives {:.1f} tokens\n",
      gain < 1.0 - kNoise ? "" : ", and costs nothing",
      ratio(drafted_step, plain_step),
      ratio(static_cast<double>(comparison.tokens), static_cast<double>(comparison.drafted_steps))
  );
}

}  // namespace

double SpeedComparison::plain_tokens_per_second() const {
  return ratio(1000.0 * static_cast<double>(tokens), plain_ms);
}

double SpeedComparison::drafted_tokens_per_second() const {
  return ratio(1000.0 * static_cast<double>(tokens), drafted_ms);
}

void Statistics::add(const GenerateResult& result) {
  ++replies;
  prompt_tokens += result.prompt_tokens;
  reused_tokens += result.reused_tokens;
  reply_tokens += static_cast<int64_t>(result.tokens.size());
  last_finish = result.finish;
  acceptance.add(result.acceptance);
  times.prefill_ms += result.times.prefill_ms;
  times.decode_ms += result.times.decode_ms;
  times.steps.draft_ms += result.times.steps.draft_ms;
  times.steps.forward_ms += result.times.steps.forward_ms;
  times.steps.verify_ms += result.times.steps.verify_ms;
  times.steps.commit_ms += result.times.steps.commit_ms;
}

double Statistics::tokens_per_second() const {
  return ratio(1000.0 * static_cast<double>(acceptance.published), times.decode_ms);
}

std::string summary_text(
    const Statistics& statistics, const MemoryFigures& memory, const SummaryNotes& notes
) {
  std::string out = fmt::format(
      "{} tokens, {:.1f} tokens/s, {}\n",
      statistics.reply_tokens,
      statistics.tokens_per_second(),
      finish_text(statistics.last_finish)
  );
  if (statistics.replies > 1) {
    out = fmt::format(
        "{} replies, {} tokens, {:.1f} tokens/s\n",
        statistics.replies,
        statistics.reply_tokens,
        statistics.tokens_per_second()
    );
  }
  append_drafting(out, statistics, notes);
  const PerStep step = per_step(statistics);
  out += fmt::format(
      "  ms per step   draft {:.2f}, verify {:.2f} (target {:.2f}, choosing {:.2f}), commit "
      "{:.2f}\n",
      step.draft_ms,
      step.forward_ms + step.verify_ms,
      step.forward_ms,
      step.verify_ms,
      step.commit_ms
  );
  if (statistics.comparison.rounds > 0) {
    append_comparison(out, statistics.comparison);
  }
  out += fmt::format(
      "  prompt        {} tokens ({} reused) in {:.0f} ms; loading took {:.2f} s\n",
      statistics.prompt_tokens,
      statistics.reused_tokens,
      statistics.times.prefill_ms,
      notes.load_seconds
  );
  out += fmt::format("  sampling      {}\n", notes.sampling);
  if (!notes.embedding_scale.empty()) {
    out += fmt::format("  drafter       embedding scale {}\n", notes.embedding_scale);
    if (!notes.draft_head.empty()) {
      out += fmt::format("  draft head    {}\n", notes.draft_head);
    }
  }
  out += fmt::format("  memory        {}\n", memory_text(memory));
  out += fmt::format("  machine       {}\n", notes.backend);
  return out;
}

void write_statistics(JsonWriter& json, const Statistics& statistics, const MemoryFigures& memory) {
  const AcceptanceStatistics& acceptance = statistics.acceptance;
  const StepTimes& times = statistics.times.steps;
  json.key("speed").begin_object();
  json.member("tokens_per_second", statistics.tokens_per_second());
  json.member("prefill_ms", statistics.times.prefill_ms)
      .member("decode_ms", statistics.times.decode_ms);
  json.member("draft_ms", times.draft_ms).member("forward_ms", times.forward_ms);
  json.member("verify_ms", times.verify_ms).member("commit_ms", times.commit_ms).end_object();
  json.key("acceptance").begin_object();
  json.member("steps", acceptance.steps)
      .member("drafted", acceptance.drafted)
      .member("accepted", acceptance.accepted);
  json.member("tokens_per_step", acceptance.tokens_per_step());
  json.member("mean_acceptance_length", acceptance.mean_acceptance_length())
      .key("by_position")
      .begin_array();
  for (int row = 0; row < acceptance.rows(); ++row) {
    json.value(acceptance.joint(row));
  }
  json.end_array().end_object();
  const SpeedComparison& comparison = statistics.comparison;
  if (comparison.rounds > 0) {
    json.key("comparison").begin_object().member("rounds", comparison.rounds);
    json.member("tokens", comparison.tokens);
    json.member("plain_tokens_per_second", comparison.plain_tokens_per_second());
    json.member("drafted_tokens_per_second", comparison.drafted_tokens_per_second());
    json.member("same_text", comparison.identical).end_object();
  }
  write_memory(json, memory);
}

}  // namespace octet::cli
