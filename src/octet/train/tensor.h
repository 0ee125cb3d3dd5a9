// The one door to libtorch: its tensors and their gradients, nothing else of it (no modules, no
// optimizers, no serialisation). Not for code outside octet/train. Invariant: this header is
// precompiled, so a source of this module costs seconds and not a minute.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <vector>

namespace octet::train {

using at::Tensor;

using AutogradContext = torch::autograd::AutogradContext;
using Gradients = torch::autograd::variable_list;

/// While it lives, operations are not recorded for gradients.
using NoGradient = at::NoGradGuard;

}  // namespace octet::train
