// Which tokens may come next: the hook between choosing a token and whatever constrains it (a
// grammar). Not for biases, which change a logit by degrees. Invariant: a mask is a function of the
// text so far alone.
#pragma once

#include <span>

namespace octet {

/// Sets the logits of tokens that may not come next to minus infinity.
class TokenMask {
 public:
  virtual ~TokenMask() = default;
  virtual void apply(std::span<float> logits) const = 0;
};

}  // namespace octet
