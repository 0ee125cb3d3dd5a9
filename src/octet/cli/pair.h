// The pair that a command works with: files opened, weights prepared, drafter attached. The one
// place of the program that knows in which order this is done. Owns everything; the generator is
// made by the commands. Invariant: `drafter` is never null; without a drafter file it is the one
// that never drafts.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "octet/cli/memory_figures.h"
#include "octet/cli/options.h"
#include "octet/engine/engine.h"
#include "octet/engine/generator.h"
#include "octet/kernels/ops.h"
#include "octet/models/draft_model.h"
#include "octet/models/target_model.h"
#include "octet/speculation/drafter.h"
#include "octet/tensor/checkpoint.h"
#include "octet/text/tokenizer.h"

namespace octet::cli {

/// What a command that nobody waits for yet may spend on learning what steps cost
/// (speculation/learn_costs.h).
inline constexpr double kWarmUpMs = 5000.0;

struct Pair {
  std::shared_ptr<const Checkpoint> target_checkpoint;
  std::shared_ptr<const Checkpoint> draft_checkpoint;  // null without a drafter file
  std::shared_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<TargetModel> target;
  std::unique_ptr<Drafter> drafter;
  std::unique_ptr<DraftModel> bare_draft_model;  // where PairNeeds ask for it
  const DraftModel* draft_model = nullptr;       // inside one of them; null without a drafter file
  std::string machine;                           // backend and threads: "cpu/avx512, 2 threads"
  std::string embedding_scale;  // the value and where it came from; empty without a drafter file
  std::string draft_head;       // the stored head in use; empty: the pair's whole one
  int64_t context = 0;
  KvType kv_type = KvType::kBF16;
  TablePlace tables = TablePlace::kFile;
  int64_t program_bytes = 0;  // resident before weights were loaded
  MemoryForecast forecast;    // empty without a limit, unless it was asked for
  double load_seconds = 0.0;

  GeneratorOptions generator_options() const {
    return {.context_length = context, .kv_type = kv_type};
  }
  /// For so many replies at a time, none waiting, and as many texts. What steps cost is learnt
  /// beforehand where nobody would notice.
  EngineOptions engine_options(int parallel) const;
};

/// How a command departs from the common case.
struct PairNeeds {
  std::unique_ptr<Ops> ops;              // the backend to use instead of the one that options name
  std::vector<int64_t> cache_positions;  // of the caches that live at a time; empty: `texts`
  int64_t texts = 1;                     // of a whole context each, in one step
  int64_t cycles = 1;                    // that take steps, each with results of its own
  int64_t other_bytes = 0;               // that the command holds beside the pair
  std::string_view context_flag = "-c";  // that asks for fewer positions
  int64_t cache_ceiling_bytes = 0;       // what holds the caches below it; 0: nothing
  bool forecast = false;                 // also without a limit
  bool bare_draft_model = false;         // for the command to call; the drafter never drafts then
  bool other_weights = false;            // that --activation may be about, beside the pair's
};

/// Throws Error for anything that does not open, load, fit together or fit into memory.
Pair load_pair(const PairOptions& options, PairNeeds needs = {});
/// Throws Error(kInvalidArgument) when --activation was given and none of the checkpoints (null:
/// not there) has NVFP4 weights.
void refuse_idle_activation(
    ActivationMode mode, std::initializer_list<const Checkpoint*> checkpoints
);
/// All but the bytes of caches.
MemoryFigures memory_figures(const Pair& pair);

/// The drafter's model alone, with the scale that load_pair would take. For commands that make
/// drafters of their own.
std::unique_ptr<DraftModel> load_draft_model(const PairOptions& options, Pair& pair);

}  // namespace octet::cli
