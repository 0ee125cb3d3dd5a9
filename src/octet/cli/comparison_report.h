// What `octet compare` found, as a table for people, one JSON object, and a self-contained HTML
// page with plots. Not for measuring. Invariant: all three show the same figures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "octet/engine/acceptance_statistics.h"
#include "octet/quantize/compare_targets.h"

namespace octet::cli {

/// A limit that was given, and what was found.
struct JudgedLimit {
  std::string flag;
  double limit = 0.0;
  double found = 0.0;
  bool kept = true;
};

struct DrafterFigures {
  std::string path;
  AcceptanceStatistics statistics;
};

struct ComparisonReport {
  std::string first;
  std::string second;
  std::optional<TargetComparison> targets;
  std::vector<DrafterFigures> drafters;  // the two drafters, both with steps, else empty
  std::vector<JudgedLimit> limits;

  bool passed() const;
  /// Percent of acceptance length that the second drafter loses; negative: it gains.
  double acceptance_loss() const;
};

std::string comparison_table(const ComparisonReport& report);
std::string comparison_json(const ComparisonReport& report);
std::string comparison_html(const ComparisonReport& report);

}  // namespace octet::cli
