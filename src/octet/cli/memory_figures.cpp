#include "octet/cli/memory_figures.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/cli/terminal.h"
#include "octet/models/dflash/config.h"
#include "octet/models/memory_plan.h"
#include "octet/speculation/proposal.h"

namespace octet::cli {
namespace {

/// Rows of a text in one step whose logits are wanted: what a grammar forces is verified as drafts
/// are, so also without a drafter.
constexpr int64_t kBlockRows = kMaxDrafts + 1;

/// Adds one cache of `positions` to the sum of both models.
struct PairPlan {
  MemoryPlan target;
  MemoryPlan drafter;
};

PairPlan plan_pair(const PairOptions& options, const MemoryDemand& demand, Ops& ops) {
  PairPlan sum;
  TargetOptions target_options;
  target_options.tables = options.tables;
  DrafterOptions drafter_options;
  drafter_options.kv_type = options.kv_type;
  for (const int64_t positions : demand.cache_positions) {
    const MemoryPlan target =
        plan_target(*demand.target, ops, target_options, positions, options.kv_type, kBlockRows);
    const int64_t caches = sum.target.cache_bytes;
    sum.target = target;
    sum.target.cache_bytes += caches;
    if (demand.drafter != nullptr) {
      const MemoryPlan drafter =
          plan_drafter(*demand.drafter, ops, drafter_options, positions, demand.vocabulary);
      const int64_t contexts = sum.drafter.cache_bytes;
      sum.drafter = drafter;
      sum.drafter.cache_bytes += contexts;
    }
  }
  return sum;
}

/// Features of a prompt's chunk, which every cycle keeps for itself until they are injected.
int64_t features_of_cycles(const MemoryDemand& demand, int64_t cycles) {
  if (demand.drafter == nullptr) {
    return 0;
  }
  const DFlashConfig config = read_dflash_config(*demand.drafter);
  return cycles * TargetOptions{}.max_rows * std::ssize(config.taps) * config.hidden *
         static_cast<int64_t>(sizeof(float));
}

}  // namespace

std::string memory_text(const MemoryFigures& memory) {
  std::string out = fmt::format("weights {}", format_bytes(memory.weights_bytes));
  if (memory.drafter_bytes > 0) {
    out += fmt::format(", drafter {}", format_bytes(memory.drafter_bytes));
  }
  out += fmt::format(", K/V {} ({})", format_bytes(memory.kv_bytes), kv_type_name(memory.kv_type));
  if (memory.draft_context_bytes > 0) {
    out += fmt::format(", draft context {}", format_bytes(memory.draft_context_bytes));
  }
  return out + fmt::format(
                   ", scratch {}, program {}; tables {} ({}); peak resident {}",
                   format_bytes(memory.scratch_bytes),
                   format_bytes(memory.program_bytes),
                   format_bytes(memory.tables_bytes),
                   memory.tables_in_memory ? "in memory" : "read in place",
                   format_bytes(memory.peak_resident_bytes)
               );
}

void write_memory(JsonWriter& json, const MemoryFigures& memory) {
  json.key("memory").begin_object();
  json.member("weights_bytes", memory.weights_bytes).member("drafter_bytes", memory.drafter_bytes);
  json.member("kv_bytes", memory.kv_bytes).member("kv_type", kv_type_name(memory.kv_type));
  json.member("draft_context_bytes", memory.draft_context_bytes)
      .member("scratch_bytes", memory.scratch_bytes)
      .member("program_bytes", memory.program_bytes);
  json.member("tables_bytes", memory.tables_bytes)
      .member("tables_in_memory", memory.tables_in_memory)
      .member("peak_resident_bytes", memory.peak_resident_bytes);
  json.end_object();
}

int64_t parse_size(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 13> kUnits = {{
      {"", 1.0},
      {"B", 1.0},
      {"k", 1e3},
      {"K", 1e3},
      {"kB", 1e3},
      {"KiB", 1024.0},
      {"M", 1e6},
      {"MB", 1e6},
      {"MiB", 1048576.0},
      {"G", 1e9},
      {"GB", 1e9},
      {"GiB", 1073741824.0},
      {"T", 1e12},
  }};
  constexpr double kMost = 1e15;
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  const auto* known = std::find_if(kUnits.begin(), kUnits.end(), [unit](const auto& candidate) {
    return candidate.first == unit;
  });
  if (error != std::errc() || known == kUnits.end() || !(number > 0.0) ||
      number * known->second > kMost) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format("'{}' is not a size; expected a number and a unit, such as 3.6GB or 512M", text)
    );
  }
  return static_cast<int64_t>(number * known->second);
}

MemoryForecast plan_memory(const PairOptions& options, const MemoryDemand& demand, Ops& ops) {
  const PairPlan plan = plan_pair(options, demand, ops);
  const int64_t further_rows =
      kBlockRows + (demand.drafter != nullptr ? read_dflash_config(*demand.drafter).block - 1 : 0);
  MemoryForecast forecast;
  forecast.scratch_bytes =
      plan.target.scratch_bytes + plan.drafter.scratch_bytes +
      (demand.texts_at_once - 1) * plan_further_text(demand.vocabulary, further_rows);
  forecast.draft_context_bytes =
      plan.drafter.cache_bytes / std::max<int64_t>(1, std::ssize(demand.cache_positions));
  forecast.scratch_bytes += features_of_cycles(demand, demand.cycles - 1);
  if (!options.memory_limit) {
    return forecast;
  }
  const int64_t scratch = forecast.scratch_bytes;
  const int64_t fixed = plan.target.weights_bytes + plan.drafter.weights_bytes + scratch +
                        plan.target.tables_bytes + demand.program_bytes + demand.other_bytes;
  int64_t caches = plan.target.cache_bytes + plan.drafter.cache_bytes;
  if (demand.cache_ceiling_bytes > 0) {
    caches = std::min(caches, demand.cache_ceiling_bytes);
  }
  const int64_t needed = fixed + caches;
  if (needed <= *options.memory_limit) {
    forecast.room_bytes = *options.memory_limit - fixed;
    return forecast;
  }
  std::string parts = fmt::format("weights {}", format_bytes(plan.target.weights_bytes));
  const auto add = [&parts](std::string_view name, int64_t bytes) {
    if (bytes > 0) {
      parts += fmt::format(", {} {}", name, format_bytes(bytes));
    }
  };
  add("drafter", plan.drafter.weights_bytes);
  add(fmt::format("K/V ({})", kv_type_name(options.kv_type)), plan.target.cache_bytes);
  add("draft context", plan.drafter.cache_bytes);
  add("scratch", scratch);
  add("tables", plan.target.tables_bytes);
  add("program", demand.program_bytes);
  add("buffers", demand.other_bytes);
  throw Error(
      ErrorKind::kResourceExhausted,
      fmt::format(
          "--memory-limit {} is less than the {} that this needs ({}); fewer positions ({}), "
          "--kv-type q8_0 or a target of fewer bits need less",
          format_bytes(*options.memory_limit),
          format_bytes(needed),
          parts,
          demand.context_flag
      )
  );
}

}  // namespace octet::cli
