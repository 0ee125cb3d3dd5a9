// What `octet eval` found: a table for people, one JSON object, CSV with a line a reply, and a
// self-contained page; and two results held against each other. Not for measuring. Invariant: all
// forms show the same figures; results are compared only where prompts and settings are equal.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "octet/evaluate/evaluation.h"
#include "octet/evaluate/summary.h"

namespace octet::cli {

struct EvalReport {
  /// Name and value: of the machine and the models, free to differ between results that are
  /// compared.
  std::vector<std::pair<std::string, std::string>> facts;
  /// ... of prompts and requests, which must not.
  std::vector<std::pair<std::string, std::string>> settings;
  std::vector<SuitePrompt> prompts;
  std::vector<SkippedLine> skipped;
  Evaluation evaluation;
  std::vector<ArmSummary> summaries;  // of the arms

  /// The arm without drafts; null: none was asked for.
  const ArmSummary* plain() const;
};

/// Which is the first prompt without a reply in that arm, and why; empty: all have one.
std::string first_failure(const EvalReport& report, size_t arm);

std::string eval_table(const EvalReport& report);
std::string eval_json(const EvalReport& report);
std::string eval_csv(const EvalReport& report);
std::string eval_html(const EvalReport& report);

/// The arms of two files that eval_json() wrote, side by side. Throws Error(kMalformed) for another
/// file, Error(kUnsupported) for a result of another version, Error(kMismatch) naming what differs
/// when prompts, settings or the number of replies do.
std::string eval_diff(const std::string& old_path, const std::string& new_path);

}  // namespace octet::cli
