// Normal random tensors from Philox numbers: initial weights that are the same on every machine and
// at every number of threads. Not for draws during training (those are keyed by step and sequence).
#pragma once

#include <cstdint>
#include <vector>

#include "octet/train/tensor.h"

namespace octet::train {

class RandomWeights {
 public:
  explicit RandomWeights(uint64_t seed) : seed_(seed) {}

  /// The next tensor: N(0, deviation^2), float32.
  Tensor normal(const std::vector<int64_t>& shape, double deviation);

 private:
  uint64_t seed_;
  int64_t tensors_ = 0;
};

}  // namespace octet::train
