// octet bench cycle: what the parts of a verify cycle cost here and now, each beside its floor.
#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/process_memory.h"
#include "octet/base/thread_pool.h"
#include "octet/bench/cycle_bench.h"
#include "octet/bench/machine_probe.h"
#include "octet/cli/bench_comparison.h"
#include "octet/cli/bench_report.h"
#include "octet/cli/commands/commands.h"
#include "octet/cli/other_program.h"
#include "octet/cli/pair.h"
#include "octet/cli/terminal.h"
#include "octet/kernels/cpu/isa_table.h"
#include "octet/kernels/profiling_ops.h"
#include "octet/speculation/proposal.h"

namespace octet::cli {
namespace {

CycleBenchOptions bench_options(
    const BenchArguments& arguments, const Pair& pair, Progress& progress
) {
  CycleBenchOptions options;
  options.prompts = arguments.prompt_rounds > 0 ? arguments.prompts : std::vector<int64_t>();
  options.rounds = arguments.rounds;
  options.prompt_rounds = std::min(arguments.prompt_rounds, arguments.rounds);
  options.kv_type = pair.kv_type;
  if (pair.draft_model != nullptr) {
    options.verify_rows = std::min(kMaxDrafts, pair.draft_model->shape().block - 1) + 1;
  }
  options.contexts = arguments.contexts;
  const int64_t limit = pair.target->shape().context_length;
  for (const std::vector<int64_t>* lengths : {&options.contexts, &options.prompts}) {
    for (const int64_t length : *lengths) {
      if (length > limit) {
        throw Error(
            ErrorKind::kInvalidArgument,
            fmt::format(
                "{} positions are more than the {} of {}; ask for less with --contexts and "
                "--prompts",
                length,
                limit,
                arguments.pair.model
            )
        );
      }
    }
  }
  options.progress = [&progress, rounds = arguments.rounds](int round) {
    progress.show(fmt::format("Round {} of {}", round, rounds));
  };
  return options;
}

/// The models bare, a cache for every context and one for the longest prompt.
PairNeeds needs_of(const BenchArguments& arguments, std::unique_ptr<Ops> ops) {
  PairNeeds needs;
  needs.ops = std::move(ops);
  needs.bare_draft_model = true;
  needs.other_bytes = MachineProbe::kBufferBytes;
  needs.context_flag = "--contexts";
  for (const int64_t context : arguments.contexts) {
    needs.cache_positions.push_back(context + kMaxDrafts + 1);
  }
  if (arguments.prompt_rounds > 0 && !arguments.prompts.empty()) {
    needs.cache_positions.push_back(
        *std::max_element(arguments.prompts.begin(), arguments.prompts.end()) + 1
    );
  }
  return needs;
}

}  // namespace

int bench(const BenchArguments& arguments) {
  if (arguments.policy) {
    return bench_policy(*arguments.policy);
  }
  if (arguments.ops) {
    return bench_ops(*arguments.ops);
  }
  if (!arguments.compare_files.empty()) {
    fmt::print(
        "{}", compare_bench_files(arguments.compare_files.at(0), arguments.compare_files.at(1))
    );
    return 0;
  }
  const OtherProgram other(arguments.compare_command, arguments.compare_pattern);
  std::unique_ptr<Ops> backend = make_cpu_ops(
      {.threads = arguments.pair.threads,
       .isa = arguments.pair.isa,
       .activation = arguments.pair.activation}
  );
  auto profiler_owner = std::make_unique<ProfilingOps>(std::move(backend));
  ProfilingOps& profiler = *profiler_owner;
  Pair pair = load_pair(arguments.pair, needs_of(arguments, std::move(profiler_owner)));
  const int threads =
      arguments.pair.threads > 0 ? arguments.pair.threads : ThreadPool::usable_cpus();
  ThreadPool pool(threads);
  const int64_t peak_before_probe = peak_resident_bytes();
  MachineProbe probe(cpu::choose_table(arguments.pair.isa).probe, pool);
  Progress progress(!arguments.json);
  CycleBenchOptions options = bench_options(arguments, pair, progress);
  if (!arguments.compare_command.empty()) {
    options.compare_ms = [&other] { return other.run_ms(); };
  }
  const CycleReport report =
      run_cycle_bench({*pair.target, pair.bare_draft_model.get(), probe, profiler}, options);
  progress.clear();
  MemoryFigures memory = memory_figures(pair);
  memory.kv_bytes = report.kv_bytes;
  memory.draft_context_bytes = report.draft_context_bytes;
  memory.scratch_bytes += report.logits_bytes;
  // The probe's buffer stays resident from its construction on.
  memory.peak_resident_bytes =
      std::max(peak_before_probe, memory.peak_resident_bytes - probe.buffer_bytes());
  const BenchHeading heading = {
      .model = arguments.pair.model,
      .draft_model = arguments.pair.draft_model,
      .draft_head = pair.draft_head,
      .backend = pair.machine,
      .activation = std::string(activation_mode_name(arguments.pair.activation)),
      .load_seconds = pair.load_seconds,
      .memory = memory};
  fmt::print("{}\n", arguments.json ? bench_json(heading, report) : bench_table(heading, report));
  return 0;
}

}  // namespace octet::cli
