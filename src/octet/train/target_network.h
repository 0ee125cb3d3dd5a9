// A gemma4 target as a differentiable function of its weights: tokens in, the states that the head
// scores out. The formula is that of models/gemma4/forward.h (gemma4.md sections 4 and 5), over
// whole sequences without a cache; the tests hold the two against each other. Not for losses
// (head_loss.h). Invariant: a row sees rows at and before it in its own sequence alone.
#pragma once

#include <cstdint>

#include "octet/models/gemma4/config.h"
#include "octet/train/operations.h"
#include "octet/train/parameters.h"
#include "octet/train/tensor.h"

namespace octet::train {

class TargetNetwork {
 public:
  /// `rope_divisors` [full head dim / 2] of the full layers, as checkpoints hold them.
  TargetNetwork(Gemma4Config config, const Tensor& rope_divisors, Precision precision);

  const Gemma4Config& config() const { return config_; }

  /// rms(x; output norm) of every token: tokens [sequences, length] int64, from position 0; the
  /// result [sequences * length, hidden].
  Tensor states(const Parameters& parameters, const Tensor& tokens) const;

 private:
  struct Batch;
  struct KeysAndValues;

  Tensor per_layer_inputs(
      const Parameters& parameters, const Tensor& tokens, const Tensor& embedded
  ) const;
  Tensor attention(const Parameters& parameters, int64_t l, const Tensor& x, Batch& batch) const;
  KeysAndValues keys_and_values(
      const Parameters& parameters, int64_t l, const Tensor& normed, const Batch& batch
  ) const;
  Tensor mlp(const Parameters& parameters, int64_t l, const Tensor& x) const;
  Tensor per_layer_branch(
      const Parameters& parameters, int64_t l, const Tensor& x, const Tensor& inputs
  ) const;

  Gemma4Config config_;
  int64_t full_pairs_ = 0;  // that rotate
  Precision precision_;
};

/// Initial weights of a target like this one: matrices N(0, 1 / inputs), tables N(0, 1 / width)
/// because the forward pass scales them up, norms of queries 1 / sqrt(head width) because the
/// attention scale is 1, norms behind attention and MLP 0.5, behind the per-layer input 0.2, all
/// others and the layer scalars 1.
Parameters initial_target(const Checkpoint& like, uint64_t seed);

}  // namespace octet::train
