// What a pair will need in memory, by part, before a weight is read: for a ceiling that refuses
// early instead of failing late. Counts with the code that loads, so it cannot forget a weight. Not
// a measurement (ModelMemory, process_memory.h). Invariant: parts are upper bounds; tables that
// stay in the file are not counted, since the system may take their pages back at any time.
#pragma once

#include <cstdint>

#include "octet/models/dflash/forward.h"
#include "octet/models/gemma4/forward.h"
#include "octet/tensor/checkpoint.h"

namespace octet {

struct MemoryPlan {
  int64_t weights_bytes = 0;
  int64_t tables_bytes = 0;   // 0 when they stay in the file
  int64_t cache_bytes = 0;    // keys and values of `positions`
  int64_t scratch_bytes = 0;  // activations, logits, working memory of the backend
};

/// `block_rows`: the most rows of one text whose logits a forward gives. Throws Error as
/// load_target would for a file that does not fit.
MemoryPlan plan_target(
    const Checkpoint& checkpoint,
    Ops& ops,
    const TargetOptions& options,
    int64_t positions,
    KvType type,
    int64_t block_rows
);

/// Scratch that every further text adds to a model's step: logits of so many rows of its block.
int64_t plan_further_text(int64_t vocabulary, int64_t rows);

/// `vocabulary`: of the target. Throws Error as load_drafter would, but for the pair's agreement.
MemoryPlan plan_drafter(
    const Checkpoint& checkpoint,
    Ops& ops,
    const DrafterOptions& options,
    int64_t positions,
    int64_t vocabulary
);

}  // namespace octet
