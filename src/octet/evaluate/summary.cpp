#include "octet/evaluate/summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace octet {
namespace {

double ratio(double numerator, double denominator) {
  return denominator > 0.0 ? numerator / denominator : 0.0;
}

}  // namespace

Quantiles quantiles_of(std::vector<double> values) {
  Quantiles out;
  out.count = std::ssize(values);
  if (values.empty()) {
    return out;
  }
  std::sort(values.begin(), values.end());
  const auto at = [&](double q) {
    const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(values.size())));
    return values[std::max<size_t>(rank, 1) - 1];
  };
  out.mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  out.p50 = at(0.5);
  out.p90 = at(0.9);
  out.p99 = at(0.99);
  return out;
}

double ArmSummary::tokens_per_second() const {
  return ratio(1000.0 * static_cast<double>(decode_tokens), decode_ms);
}

double ArmSummary::throughput() const {
  return ratio(1000.0 * static_cast<double>(reply_tokens), wall_ms);
}

double ArmSummary::step_ms() const {
  return ratio(decode_ms, static_cast<double>(acceptance.steps));
}

ArmSummary summarize(const EvalArm& arm, std::span<const SuitePrompt> prompts) {
  ArmSummary out;
  out.wall_ms = arm.wall_ms;
  std::vector<double> first_token;
  std::vector<double> per_token;
  std::vector<double> between;
  for (const EvalRecord& record : arm.records) {
    if (!record.error.empty()) {
      ++out.failed;
      continue;
    }
    const SuitePrompt& prompt = prompts[static_cast<size_t>(record.prompt)];
    ++out.replies;
    out.prompt_tokens += record.prompt_tokens;
    out.reply_tokens += record.reply_tokens;
    out.acceptance.add(record.acceptance);
    out.by_category[prompt.category.empty() ? "none" : prompt.category].add(record.acceptance);
    if (!prompt.language.empty()) {
      out.by_language[prompt.language].add(record.acceptance);
    }
    first_token.push_back(record.first_token_ms);
    if (record.reply_tokens > 1) {
      const double decode_ms = record.total_ms - record.first_token_ms;
      out.decode_ms += decode_ms;
      out.decode_tokens += record.reply_tokens - 1;
      per_token.push_back(decode_ms / static_cast<double>(record.reply_tokens - 1));
    }
    between.insert(between.end(), record.between_tokens_ms.begin(), record.between_tokens_ms.end());
  }
  out.first_token_ms = quantiles_of(std::move(first_token));
  out.per_token_ms = quantiles_of(std::move(per_token));
  out.between_tokens_ms = quantiles_of(std::move(between));
  return out;
}

double break_even(const ArmSummary& plain, const ArmSummary& arm) {
  return ratio(arm.step_ms(), plain.step_ms());
}

}  // namespace octet
