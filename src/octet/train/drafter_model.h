// A drafter between training and use: the metadata of a new one that fits a target, and its weights
// as a model in the engine. Not for the formula (drafter_network.h). Invariant: the frame and
// weights of the network make a checkpoint that fits the target it was trained for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "octet/kernels/ops.h"
#include "octet/quantize/portable_metadata.h"
#include "octet/speculation/drafters/dflash_drafter.h"
#include "octet/train/drafter_network.h"
#include "octet/train/parameters.h"

namespace octet::train {

/// The sizes of a new drafter; 0: from the target.
struct DrafterShape {
  int64_t layers = 2;
  int64_t heads = 4;
  int64_t kv_heads = 2;
  int64_t head_dim = 64;
  int64_t feed_forward = 0;  // 0: twice the hidden size
  int64_t window = 128;      // 0: all of the context
  int64_t block = 8;
  std::vector<int64_t> taps;  // zero-based target layers; empty: as many as fit, evenly
  double rope_base = 1e6;
  double embedding_scale = 0.0;  // 0: the square root of the hidden size, or as trained before
};

/// Canonical metadata, with the target's tokenizer. Throws Error where shape and target do not fit.
ModelFrame new_drafter_frame(const Checkpoint& target, const DrafterShape& shape);

/// The metadata of an existing drafter, completed by the target's tokenizer, with the factor of its
/// embeddings.
ModelFrame drafter_frame(
    const Checkpoint& drafter, const Checkpoint& target, float embedding_scale
);

/// The weights as they are now, in the engine. `target` must outlive the result.
std::unique_ptr<DFlashDrafter> drafter_in_engine(
    const Parameters& parameters, const ModelFrame& frame, Ops& ops, TargetModel& target
);

}  // namespace octet::train
