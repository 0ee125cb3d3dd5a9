#include "octet/cli/bench_comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "octet/base/error.h"
#include "octet/formats/json_value.h"

namespace octet::cli {
namespace {

struct ResultRow {
  std::string name;
  int64_t context = 0;
  int64_t rows = 0;
  double median_ms = 0.0;
  double floor_ratio = 0.0;
  std::tuple<int64_t, int64_t, int64_t> floor;  // bytes, int8 and float operations

  bool is(const ResultRow& other) const {
    return std::tie(name, context, rows) == std::tie(other.name, other.context, other.rows);
  }
};

struct Result {
  std::string path;
  std::vector<std::pair<std::string, std::string>> facts;  // what was measured, by name
  std::vector<ResultRow> rows;
};

std::string label_of(const ResultRow& row) {
  return fmt::format("{} (context {}, {} rows)", row.name, row.context, row.rows);
}

/// `none`: how an empty text reads.
std::string fact_in(const JsonValue& object, std::string_view name, std::string_view none) {
  const std::string* text = object.find_string(name);
  if (text == nullptr) {
    return "not stated";
  }
  return text->empty() ? std::string(none) : *text;
}

ResultRow read_row(const JsonValue& row, const std::string& path) {
  const std::string* name = row.find_string("name");
  ResultRow read = {
      .name = name != nullptr ? *name : "",
      .context = row.find_integer("context").value_or(0),
      .rows = row.find_integer("rows").value_or(0),
      .median_ms = row.find_number("median_ms").value_or(0.0),
      .floor_ratio = row.find_number("floor_ratio").value_or(0.0),
      .floor = {
          row.find_integer("floor_bytes").value_or(0),
          row.find_integer("int8_operations").value_or(0),
          row.find_integer("float_operations").value_or(0)}};
  if (!std::isfinite(read.median_ms) || read.median_ms <= 0.0) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format(
            "{}: {} has no \"median_ms\" above 0; measure again with `octet bench cycle --json`",
            path,
            label_of(read)
        )
    );
  }
  return read;
}

Result read_result(const std::string& path) {
  const JsonValue document = read_json_object(path);
  const JsonArray* rows = document.find_array("rows");
  if (rows == nullptr || document.find_string("model") == nullptr) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format(
            "{} is no result of `octet bench cycle --json`: it has no \"rows\" or no \"model\"",
            path
        )
    );
  }
  const JsonValue* memory = document.find("memory");
  Result result;
  result.path = path;
  result.facts = {
      {"target", fact_in(document, "model", "none")},
      {"drafter", fact_in(document, "draft_model", "none")},
      {"draft head", fact_in(document, "draft_head", "the pair's")},
      {"K/V", memory != nullptr ? fact_in(*memory, "kv_type", "none") : "not stated"},
      {"backend", fact_in(document, "backend", "none")},
      {"activation", fact_in(document, "activation", "none")}};
  for (const JsonValue& row : *rows) {
    result.rows.push_back(read_row(row, path));
  }
  return result;
}

const ResultRow* find_in(const Result& result, const ResultRow& wanted) {
  const auto at = std::find_if(result.rows.begin(), result.rows.end(), [&](const ResultRow& row) {
    return row.is(wanted);
  });
  return at != result.rows.end() ? &*at : nullptr;
}

std::string facts_text(const Result& before, const Result& after) {
  std::string out = fmt::format("{:<11} {}\n{:<11} {}\n", "old", before.path, "new", after.path);
  std::vector<std::string> different;
  for (size_t i = 0; i < before.facts.size(); ++i) {
    const auto& [name, old_value] = before.facts[i];
    const std::string& new_value = after.facts[i].second;
    if (old_value == new_value) {
      out += fmt::format("{:<11} {}\n", name, old_value);
    } else {
      out += fmt::format("{:<11} {} -> {}\n", name, old_value, new_value);
      different.push_back(name);
    }
  }
  if (!different.empty()) {
    out += fmt::format("The two differ in: {}.\n", fmt::join(different, ", "));
  }
  return out;
}

std::string missing_text(const Result& from, const Result& other) {
  std::vector<std::string> labels;
  for (const ResultRow& row : from.rows) {
    if (find_in(other, row) == nullptr) {
      labels.push_back(label_of(row));
    }
  }
  return labels.empty() ? "" : fmt::format("Only in {}: {}.\n", from.path, fmt::join(labels, ", "));
}

}  // namespace

std::string compare_bench_files(const std::string& old_path, const std::string& new_path) {
  const Result before = read_result(old_path);
  const Result after = read_result(new_path);
  std::string out = facts_text(before, after);
  out += fmt::format(
      "\n{:<12} {:>8} {:>6} {:>10} {:>10} {:>8} {:>12} {:>12}\n",
      "quantity",
      "context",
      "rows",
      "old ms",
      "new ms",
      "new/old",
      "old / floor",
      "new / floor"
  );
  int64_t common = 0;
  int64_t other_floors = 0;
  for (const ResultRow& row : after.rows) {
    const ResultRow* old = find_in(before, row);
    if (old == nullptr) {
      continue;
    }
    ++common;
    other_floors += old->floor != row.floor ? 1 : 0;
    out += fmt::format(
        "{:<12} {:>8} {:>6} {:>10.2f} {:>10.2f} {:>8.3f} {:>12.2f} {:>12.2f}\n",
        row.name,
        row.context,
        row.rows,
        old->median_ms,
        row.median_ms,
        row.median_ms / old->median_ms,
        old->floor_ratio,
        row.floor_ratio
    );
  }
  if (common == 0) {
    throw Error(
        ErrorKind::kMismatch,
        fmt::format(
            "{} and {} have no quantity in common; measure both with the same --contexts and "
            "--prompts",
            old_path,
            new_path
        )
    );
  }
  if (other_floors > 0) {
    out += fmt::format(
        "The floors of {} rows are of other work (other weights, or counted by another version): "
        "their ratios to the floor do not compare.\n",
        other_floors
    );
  }
  return out + missing_text(before, after) + missing_text(after, before);
}

}  // namespace octet::cli
