#include "octet/models/memory_plan.h"

#include <algorithm>
#include <vector>

namespace octet {
namespace {

/// Rows of one injection step (dflash/forward.cpp).
constexpr int64_t kInjectRows = kAttentionChunk;
/// The backend keeps the rows of a product rounded in up to three ways, and packed queries and
/// partial sums of attention: less than so many copies of the activations.
constexpr int64_t kBackendCopies = 2;

int64_t scratch_of(int64_t rows, int64_t row_floats, int64_t logits) {
  const int64_t floats = rows * row_floats * (1 + kBackendCopies) + logits;
  return floats * static_cast<int64_t>(sizeof(float));
}

}  // namespace

MemoryPlan plan_target(
    const Checkpoint& checkpoint,
    Ops& ops,
    const TargetOptions& options,
    int64_t positions,
    KvType type,
    int64_t block_rows
) {
  const Gemma4Config config = read_gemma4_config(checkpoint);
  WeightLoader loader(checkpoint, ops, {}, options.tables, LoadMode::kCount);
  load_gemma4_weights(loader, config);
  MemoryPlan plan;
  plan.weights_bytes = loader.weights_bytes();
  plan.tables_bytes = options.tables == TablePlace::kMemory ? loader.tables_bytes() : 0;
  plan.cache_bytes = KvCache::bytes_for(kv_layers_of(config), positions, options.max_rows, type);
  plan.scratch_bytes =
      scratch_of(options.max_rows, activation_floats(config), block_rows * config.vocabulary);
  return plan;
}

int64_t plan_further_text(int64_t vocabulary, int64_t rows) {
  return rows * vocabulary * static_cast<int64_t>(sizeof(float));
}

MemoryPlan plan_drafter(
    const Checkpoint& checkpoint,
    Ops& ops,
    const DrafterOptions& options,
    int64_t positions,
    int64_t vocabulary
) {
  const DFlashConfig config = read_dflash_config(checkpoint);
  const bool own_head = config.own_vocabulary && options.head == DraftHead::kOwnIfPresent;
  WeightLoader loader(checkpoint, ops, {}, TablePlace::kFile, LoadMode::kCount);
  load_dflash_weights(loader, config, own_head);
  MemoryPlan plan;
  plan.weights_bytes = loader.weights_bytes();
  plan.cache_bytes = KvCache::bytes_for(
      kv_layers_of(config), positions + config.block, config.block + kKeptPositions, options.kv_type
  );
  // Features of a whole prompt chunk wait for injection.
  const auto features = static_cast<int64_t>(config.taps.size()) * config.hidden;
  const int64_t chunk = TargetOptions{}.max_rows;
  plan.scratch_bytes =
      scratch_of(
          kInjectRows, activation_floats(config) + features, (config.block - 1) * vocabulary
      ) +
      chunk * features * static_cast<int64_t>(sizeof(float));
  return plan;
}

}  // namespace octet
