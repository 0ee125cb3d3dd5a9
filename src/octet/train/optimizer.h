// Turns gradients into new weights: Muon for matrices and AdamW for everything else, or AdamW for
// all, under a schedule of rates. Moments are float32 whatever products are rounded to. Not for
// gradients themselves (trainer.h sums and clips them). Invariant: a step depends on weights,
// gradients, moments and the step's number alone, so a restored state continues bit for bit.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "octet/train/parameters.h"
#include "octet/train/tensor.h"

namespace octet::train {

enum class OptimizerKind { kMuon, kAdamW };

struct OptimizerSettings {
  OptimizerKind kind = OptimizerKind::kMuon;
  double rate = 2e-3;         // of AdamW
  double matrix_rate = 0.02;  // of Muon, before its scale for tall matrices
  double momentum = 0.95;     // of Muon
  double first_decay = 0.9;   // of AdamW
  double second_decay = 0.98;
  double weight_decay = 0.0;  // decoupled, of both
};

/// Shares of all steps: the rate rises from 0 over `warm_up`, stays until `flat`, and falls
/// linearly to 0 at the end.
struct Schedule {
  double warm_up = 0.03;
  double flat = 0.4;

  /// Of the step `step` in [0, steps): in (0, 1].
  double factor(int64_t step, int64_t steps) const;
};

/// What a parameter needs beside the common rates.
struct ParameterRule {
  bool orthogonal = false;  // a matrix for Muon; tables of embeddings are none
  double rate_scale = 1.0;  // of AdamW
};

class Optimizer {
 public:
  Optimizer(
      const Parameters& parameters,
      OptimizerSettings settings,
      const std::function<ParameterRule(const Parameter&)>& rule
  );

  /// Applies gradients (of the same order as the parameters) with the rates times `factor`. `step`
  /// counts from 0.
  void step(Parameters& parameters, std::span<const Tensor> gradients, int64_t step, double factor);

  struct Moments {
    Tensor first;   // Muon: its momentum
    Tensor second;  // undefined for Muon
  };
  std::span<Moments> moments() { return moments_; }
  std::span<const Moments> moments() const { return moments_; }

 private:
  void adam_step(size_t index, Tensor& value, const Tensor& gradient, int64_t step, double factor);
  void muon_step(size_t index, Tensor& value, const Tensor& gradient, double factor);

  OptimizerSettings settings_;
  std::vector<ParameterRule> rules_;
  std::vector<Moments> moments_;
};

/// The nearest matrix with orthonormal rows or columns, roughly: five Newton-Schulz steps with the
/// coefficients of Muon, which leave singular values between 0.7 and 1.2. Source: Jordan et al.,
/// "Muon: an optimizer for hidden layers in neural networks" (2024).
Tensor orthogonalized(const Tensor& matrix);

/// Scales all gradients so that their common norm is at most `most` (0: no limit); returns the norm
/// they had.
double clip_gradients(std::span<Tensor> gradients, double most);

}  // namespace octet::train
