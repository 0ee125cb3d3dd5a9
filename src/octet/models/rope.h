// Cosines and sines of rotary position embeddings, once per position and kind for a whole forward.
// Frequencies and angles are formed in double and only the cosine and sine are rounded, so that
// position 100,000 is as exact as position 1. The rotation itself is an operation of the backend.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "octet/kernels/ops.h"
#include "octet/models/row_buffer.h"

namespace octet {

class Rope {
 public:
  Rope() = default;
  /// Frequencies base^(-2i / head_dim) / divisors[i] for the pairs i < head_dim / 2; no divisors:
  /// all 1. Trailing pairs whose divisor is 1e20 or more do not rotate and are left out (files
  /// write 1e30 for "never").
  Rope(double base, int head_dim, std::span<const float> divisors);

  int64_t pairs() const { return static_cast<int64_t>(frequencies_.size()); }

  /// Angles for one row a position, kept until the next call.
  void rotate_to(std::span<const int64_t> positions);
  /// The first `rows` rows of the last rotate_to.
  RopeRows rows(int64_t rows) const;

  int64_t bytes() const { return cosines_.bytes() + sines_.bytes(); }

 private:
  std::vector<double> frequencies_;
  RowBuffer cosines_;
  RowBuffer sines_;
};

}  // namespace octet
