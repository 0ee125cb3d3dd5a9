// Records of an evaluation added up: acceptance overall, by category and language, speed,
// latencies, and whether drafting pays. Only arithmetic. Invariant: figures are over all replies of
// an arm, and replies that never came count in none.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "octet/evaluate/evaluation.h"

namespace octet {

struct Quantiles {
  int64_t count = 0;
  double mean = 0.0;
  double p50 = 0.0;
  double p90 = 0.0;
  double p99 = 0.0;
};

/// Nearest rank: the smallest value that at least the share q of all do not exceed.
Quantiles quantiles_of(std::vector<double> values);

struct ArmSummary {
  int64_t replies = 0;
  int64_t failed = 0;
  int64_t prompt_tokens = 0;
  int64_t reply_tokens = 0;
  AcceptanceStatistics acceptance;
  std::map<std::string, AcceptanceStatistics> by_category;
  std::map<std::string, AcceptanceStatistics> by_language;  // empty where no prompt names one
  Quantiles first_token_ms;                                 // TTFT: submit to the first token
  Quantiles per_token_ms;       // TPOT of a reply: (total - first token) / (tokens - 1)
  Quantiles between_tokens_ms;  // ITL: every gap of every reply
  double decode_ms = 0.0;       // from first tokens to ends, added over the replies
  int64_t decode_tokens = 0;    // the tokens written in that time
  double wall_ms = 0.0;

  /// Of one reply while it is written.
  double tokens_per_second() const;
  /// Of all conversations together, prompts included.
  double throughput() const;
  /// Time of one decode step of one reply.
  double step_ms() const;
};

ArmSummary summarize(const EvalArm& arm, std::span<const SuitePrompt> prompts);

/// Tokens a step that an arm must accept to be as fast as plain decoding: its step's time over that
/// of a plain step. 0 when one of them has no steps.
double break_even(const ArmSummary& plain, const ArmSummary& arm);

}  // namespace octet
