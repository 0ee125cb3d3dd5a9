// Differentiable operations that models are written in: those of kernels/ops.h that libtorch has
// only in many small pieces, each as one pass over memory with its own gradient (about three times
// as fast on a CPU), and the matrix product with its precision. Formulas are those of the engine.
// Invariant: a row's result depends on that row alone, and the gradient of each operation is held
// against finite differences in the tests.
#pragma once

#include <cstdint>

#include "octet/train/tensor.h"

namespace octet::train {

/// What products take and give: values rounded to bfloat16 (twice as fast where the CPU has
/// instructions for it; sums inside a product are float32), or the tensors' own type. Norms and
/// everything between products keep the type.
enum class Precision { kFull, kBF16 };

/// x W^T: x [n, in], weight [out, in].
Tensor linear(const Tensor& x, const Tensor& weight, Precision precision);

/// x (mean(x^2) + epsilon)^-1/2 w over the last dimension; an undefined weight means 1.
Tensor rms_norm(const Tensor& x, const Tensor& weight, double epsilon);

/// Rotates x [n, heads, head_dim] by angles of its row: element i < pairs of a head pairs with
/// element i + head_dim / 2. cosines, sines [n, pairs]; further pairs stay as they are.
Tensor rotate(const Tensor& x, const Tensor& cosines, const Tensor& sines);

/// silu(gate) * up.
Tensor silu_gate(const Tensor& gate, const Tensor& up);
/// gelu(gate) * up, GELU in its tanh form.
Tensor gelu_gate(const Tensor& gate, const Tensor& up);

/// Angles position * base^(-2i / head_dim) for the first `pairs` pairs, formed in float64.
struct Angles {
  Tensor cosines;  // [positions, pairs]
  Tensor sines;    // [positions, pairs]
};
Angles rope_angles(
    const Tensor& positions, double base, int64_t head_dim, int64_t pairs, at::ScalarType type
);

}  // namespace octet::train
