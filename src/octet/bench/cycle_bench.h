// Measures what the parts of a verify cycle cost, each beside its floor: plain decoding C_t,
// verification C_v(k) of k rows, a draft block C_d, injection, time to first token, at several
// contexts, and prefill. All of it interleaved over rounds, with the machine's limits measured
// again in every round, because ratios inside one round hold where absolute times drift. Contexts
// are made, not computed: caches are filled with pseudo-random keys and values. Invariant: a figure
// without a measurement does not exist; floors are bytes and operations over measured limits.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "octet/bench/machine_probe.h"
#include "octet/kernels/profiling_ops.h"
#include "octet/models/draft_model.h"
#include "octet/models/target_model.h"

namespace octet {

/// The block that costs are published for. Passes of up to so many rows are always measured.
inline constexpr int64_t kPublishedBlock = 8;

struct CycleBenchOptions {
  std::vector<int64_t> contexts = {0, 4096, 16384, 32768, 65536};
  std::vector<int64_t> prompts = {512, 4096};
  int rounds = 5;
  int prompt_rounds = 1;  // prefill takes long; it is measured in the first rounds only, 0: not
  KvType kv_type = KvType::kBF16;
  /// Rows that the target verifies in a whole step: the drafts that one takes and the token before
  /// them.
  int64_t verify_rows = kPublishedBlock;
  /// Called after each round with the number done.
  std::function<void(int round)> progress;
  /// Another program's timing, run once a round: returns its milliseconds. Empty: none.
  std::function<double()> compare_ms;
};

/// One measured quantity.
struct CycleRow {
  std::string name;                 // "C_t", "C_v(4)", "C_d", "inject(4)", "prefill", "first token"
  int64_t context = 0;              // positions before the rows
  int64_t rows = 0;                 // rows of the pass
  std::vector<double> ms;           // by round; of passes of less than 10 ms the median of many
  std::vector<double> floor_ratio;  // by round: ms over the floor with that round's limits
  int64_t floor_bytes = 0;
  int64_t int8_operations = 0;
  int64_t float_operations = 0;
  /// The first pass, which touches scratch memory and rows of the embedding tables for the first
  /// time; not among `ms`.
  double first_ms = 0.0;
  ProfilingOps::Profile first_profile;
  ProfilingOps::Profile profile;  // of the last pass
  double profile_ms = 0.0;        // that it took; `ms` has medians where passes are short

  double median_ms() const;
  double best_ms() const;
  double median_floor_ratio() const;
};

struct CycleReport {
  std::vector<MachineLimits> limits;  // by round
  std::vector<CycleRow> rows;
  std::vector<double> compare_ms;  // by round; empty without a comparison
  int64_t kv_bytes = 0;            // of the caches of all contexts together
  int64_t draft_context_bytes = 0;
  int64_t logits_bytes = 0;  // of drafts

  int64_t verify_rows = kPublishedBlock;  // of the options

  const CycleRow* find(std::string_view name, int64_t context) const;
  /// tau * C_t / (C_d + C_v(verify_rows) + injection) at a context: medians over rounds of the
  /// ratio inside a round. 0 when a part is missing.
  double speedup(double acceptance_length, int64_t context) const;
  /// The row of a pass that verifies so many: "C_t" for one, else "C_v(N)".
  static std::string verify_name(int64_t rows);
  /// C_v(8) etc. over C_t, medians of the ratio inside a round.
  double ratio_to_plain(std::string_view name, int64_t context) const;
};

struct CycleBenchInputs {
  TargetModel& target;
  DraftModel* drafter = nullptr;  // null: only the target's rows
  MachineProbe& probe;
  ProfilingOps& profiler;  // the backend that target and drafter were loaded with
};

CycleReport run_cycle_bench(const CycleBenchInputs& inputs, const CycleBenchOptions& options);

double median(std::vector<double> values);

}  // namespace octet
