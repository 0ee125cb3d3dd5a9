// The loss of states that a head scores: weighted cross entropy against labels or against a
// teacher's distribution. The head's logits are never kept: the gradients are formed while the
// loss is, a few hundred rows at a time. The head trains where its weight wants a gradient. Not for
// what makes the states. Invariant: everything is a sum over rows, so that parts of a batch add up.
#pragma once

#include <cstdint>
#include <vector>

#include "octet/train/operations.h"
#include "octet/train/tensor.h"

namespace octet::train {

struct HeadLossRows {
  Tensor labels;   // [rows], int64
  Tensor weights;  // [rows], the states' type; 0: the row does not count
  Tensor teacher;  // [rows, vocabulary] logits with soft cap; undefined: the labels teach
};

struct OutputHead {
  Tensor weight;         // [vocabulary, hidden]
  double softcap = 0.0;  // of the logits, as where probabilities are used; 0: none
  Precision precision = Precision::kFull;
};

struct HeadLoss {
  Tensor loss;  // scalar: sum over rows of weight * cross entropy
  Tensor hits;  // [rows], bool: the largest logit is the label's
};

/// states [rows, hidden]. Logits are formed for `rows_at_a_time` rows together; 0: as many as fit
/// 16 MB, but 256 at least.
HeadLoss head_loss(
    const Tensor& states,
    const OutputHead& head,
    const HeadLossRows& rows,
    int64_t rows_at_a_time = 0
);

}  // namespace octet::train
