// Hyperparameters of a gemma4 target, read once from canonical metadata (E4B, E2B and small
// siblings alike). Everything that varies by layer is in the layer's own entry, so that the forward
// pass never asks for a kind. Invariant: every layer's donor owns K/V, has the layer's kind and is
// not behind it.
#pragma once

#include <cstdint>
#include <vector>

#include "octet/models/target_model.h"
#include "octet/tensor/checkpoint.h"

namespace octet {

struct Gemma4LayerConfig {
  bool sliding = false;  // window and rope of the sliding kind, else full attention
  bool owns_kv = false;
  int heads = 0;  // query heads
  int kv_heads = 0;
  int head_dim = 0;
  int64_t feed_forward = 0;  // MLP width F
  int64_t donor = 0;  // the layer whose keys and values this one reads: itself when it owns them
};

struct Gemma4Config {
  int64_t hidden = 0;      // D
  int64_t vocabulary = 0;  // V: rows of the embedding
  int64_t context_length = 0;
  int64_t window = 0;     // W: keys a sliding layer sees, itself included
  int64_t ple_width = 0;  // P: width of a per-layer embedding; 0: none
  float norm_epsilon = 0.0F;
  float softcap = 0.0F;  // of the final logits; 0: none
  int full_head_dim = 0;
  int sliding_head_dim = 0;
  double full_rope_base = 0.0;
  double sliding_rope_base = 0.0;
  std::vector<Gemma4LayerConfig> layers;

  const Gemma4LayerConfig& layer(int64_t l) const { return layers[static_cast<size_t>(l)]; }
  int64_t layer_count() const { return static_cast<int64_t>(layers.size()); }  // L
  int64_t last_kv_layer() const;  // the highest layer that owns keys and values
  TargetShape shape() const { return {vocabulary, hidden, layer_count(), context_length}; }
};

/// Throws Error naming the file and the key that is missing, impossible or not supported.
Gemma4Config read_gemma4_config(const Checkpoint& checkpoint);

}  // namespace octet
