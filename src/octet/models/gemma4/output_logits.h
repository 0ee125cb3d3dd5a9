// The end of a gemma4 target by itself: from the residual after the last layer to logits. For
// whoever has recorded residuals instead of a forward pass; the forward pass ends with the same
// code. Invariant: a residual gives the logits that it has in the forward pass, to the bit.
#pragma once

#include <span>
#include <vector>

#include "octet/kernels/ops.h"
#include "octet/models/target_model.h"
#include "octet/tensor/checkpoint.h"

namespace octet {

struct OutputNorm {
  std::span<const float> weight;  // [hidden]
  float epsilon = 0.0F;
};

/// states = rms(states; norm), logits = head(states), without the soft cap. states [n, hidden],
/// logits [n, vocabulary].
void norm_and_head(Ops& ops, const OutputNorm& norm, TargetModel& target, Rows states, Rows logits);

class OutputLogits {
 public:
  /// Reads the output norm of the checkpoint. `target` is its model, of which head and soft cap are
  /// used (LentVocabulary is enough); it and `ops` must outlive this. Throws Error naming the file
  /// and the key or tensor that does not fit.
  OutputLogits(const Checkpoint& checkpoint, Ops& ops, TargetModel& target);

  /// The layer whose taps from_states() takes.
  int last_layer() const { return static_cast<int>(target_.shape().layers) - 1; }
  int64_t vocabulary() const { return target_.shape().vocabulary; }

  /// logits [n, vocabulary], soft cap included, of taps of the last layer [n, hidden], which are
  /// overwritten.
  void from_states(Rows states, Rows logits);

 private:
  Ops& ops_;
  TargetModel& target_;
  std::vector<float> norm_;  // [hidden]
  float epsilon_ = 0.0F;
};

}  // namespace octet
