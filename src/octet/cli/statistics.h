// The figures of a run and how they are told, to people and to programs. Adds up, divides and
// formats; measures nothing.
#pragma once

#include <cstdint>
#include <string>

#include "octet/cli/json_writer.h"
#include "octet/cli/memory_figures.h"
#include "octet/engine/acceptance_statistics.h"
#include "octet/engine/generator.h"

namespace octet::cli {

/// Plain against drafted decoding of the same requests, measured in turn. Times are medians over
/// the rounds, added over the replies; tokens are those of the decode steps.
struct SpeedComparison {
  int rounds = 0;
  int64_t tokens = 0;
  double plain_ms = 0.0;
  double drafted_ms = 0.0;
  int64_t plain_steps = 0;
  int64_t drafted_steps = 0;
  bool identical = true;

  double plain_tokens_per_second() const;
  double drafted_tokens_per_second() const;
};

struct Statistics {
  int64_t replies = 0;
  int64_t prompt_tokens = 0;
  int64_t reused_tokens = 0;
  int64_t reply_tokens = 0;
  FinishReason last_finish = FinishReason::kNone;
  AcceptanceStatistics acceptance;
  GenerateTimes times;
  SpeedComparison comparison;

  void add(const GenerateResult& result);
  double tokens_per_second() const;
};

struct SummaryNotes {
  std::string sampling;
  std::string undrafted_reason;  // empty while drafting
  std::string embedding_scale;   // empty without a drafter
  std::string draft_head;        // empty: the pair's whole one
  std::string backend;
  double load_seconds = 0.0;
};

/// Several lines for people.
std::string summary_text(
    const Statistics& statistics, const MemoryFigures& memory, const SummaryNotes& notes
);

/// The same as members of the open JSON object.
void write_statistics(JsonWriter& json, const Statistics& statistics, const MemoryFigures& memory);

}  // namespace octet::cli
