// The weights of a DFlash drafter as plain structs; names of sizes as in config.h, T taps, V
// vocabulary. The embedding always is the target's, the head may be.
#pragma once

#include <memory>
#include <vector>

#include "octet/kernels/ops.h"
#include "octet/models/dflash/config.h"
#include "octet/models/weight_loader.h"

namespace octet {

struct DFlashLayer {
  std::vector<float>
      attention_norm;  // [D], of block rows only: context features are normed once, by fusion
  std::unique_ptr<Weight> query;   // [H*d, D]
  std::unique_ptr<Weight> key;     // [K*d, D]
  std::unique_ptr<Weight> value;   // [K*d, D]
  std::vector<float> query_norm;   // [d]
  std::vector<float> key_norm;     // [d]
  std::unique_ptr<Weight> output;  // [D, H*d]
  std::vector<float> mlp_norm;     // [D]
  std::unique_ptr<Weight> gate;    // [F, D]
  std::unique_ptr<Weight> up;      // [F, D]
  std::unique_ptr<Weight> down;    // [D, F]
};

struct DFlashWeights {
  std::unique_ptr<Weight> fusion;  // [D, T*D]
  std::vector<float> fusion_norm;  // [D]
  std::vector<DFlashLayer> layers;
  std::vector<float> output_norm;  // [D]
  std::unique_ptr<Weight> head;    // [V, D], or a stored draft head; null: the target's
};

/// Throws Error(kUnsupported) when the file holds a tensor that plain DFlash does not have: then it
/// is a relative.
DFlashWeights load_dflash_weights(WeightLoader& loader, const DFlashConfig& config, bool own_head);

}  // namespace octet
