#include "octet/train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "octet/base/check.h"

namespace octet::train {
namespace {

constexpr double kTiny = 1e-8;

}  // namespace

double Schedule::factor(int64_t step, int64_t steps) const {
  const double place = (static_cast<double>(step) + 1.0) / static_cast<double>(steps);
  if (place < warm_up) {
    return place / warm_up;
  }
  const double least = 1.0 / static_cast<double>(steps);
  return place <= flat ? 1.0 : std::max(least, (1.0 - place) / (1.0 - flat));
}

Optimizer::Optimizer(
    const Parameters& parameters,
    OptimizerSettings settings,
    const std::function<ParameterRule(const Parameter&)>& rule
)
    : settings_(settings) {
  for (const Parameter& parameter : parameters.all()) {
    ParameterRule own = rule(parameter);
    own.orthogonal = own.orthogonal && settings_.kind == OptimizerKind::kMuon;
    Moments moments;
    moments.first = at::zeros_like(parameter.value.detach());
    if (!own.orthogonal) {
      moments.second = at::zeros_like(parameter.value.detach());
    }
    rules_.push_back(own);
    moments_.push_back(std::move(moments));
  }
}

void Optimizer::step(
    Parameters& parameters, std::span<const Tensor> gradients, int64_t step, double factor
) {
  const NoGradient no_gradient;
  OCTET_CHECK(gradients.size() == moments_.size());
  for (size_t i = 0; i < moments_.size(); ++i) {
    Tensor& value = parameters.all()[i].value;
    if (rules_[i].orthogonal) {
      muon_step(i, value, gradients[i], factor);
    } else {
      adam_step(i, value, gradients[i], step, factor);
    }
  }
}

/// m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, both freed of their start at zero; x -= rate m /
/// (sqrt(v) + tiny).
void Optimizer::adam_step(
    size_t index, Tensor& value, const Tensor& gradient, int64_t step, double factor
) {
  const double rate = settings_.rate * rules_[index].rate_scale * factor;
  Moments& moments = moments_[index];
  moments.first.mul_(settings_.first_decay).add_(gradient, 1.0 - settings_.first_decay);
  moments.second.mul_(settings_.second_decay)
      .addcmul_(gradient, gradient, 1.0 - settings_.second_decay);
  const auto count = static_cast<double>(step + 1);
  const double first_scale = 1.0 - std::pow(settings_.first_decay, count);
  const double second_scale = std::sqrt(1.0 - std::pow(settings_.second_decay, count));
  value.mul_(1.0 - rate * settings_.weight_decay);
  const Tensor spread = at::sqrt(moments.second).add_(kTiny * second_scale);
  value.addcdiv_(moments.first, spread, -rate * second_scale / first_scale);
}

void Optimizer::muon_step(size_t index, Tensor& value, const Tensor& gradient, double factor) {
  Tensor& momentum = moments_[index].first;
  momentum.mul_(settings_.momentum).add_(gradient, 1.0 - settings_.momentum);
  const Tensor ahead = gradient * (1.0 - settings_.momentum) + momentum * settings_.momentum;
  const double rows = static_cast<double>(value.size(0));
  const double cols = static_cast<double>(value.size(1));
  const double rate = settings_.matrix_rate * factor;
  value.mul_(1.0 - rate * settings_.weight_decay);
  value.add_(orthogonalized(ahead), -rate * std::sqrt(std::max(1.0, rows / cols)));
}

Tensor orthogonalized(const Tensor& matrix) {
  constexpr int kSteps = 5;
  constexpr double kA = 3.4445;
  constexpr double kB = -4.7750;
  constexpr double kC = 2.0315;
  const bool tall = matrix.size(0) > matrix.size(1);
  Tensor x = tall ? matrix.t().contiguous() : matrix;
  x = x / (at::norm(x) + 1e-7);
  for (int i = 0; i < kSteps; ++i) {
    const Tensor square = at::mm(x, x.t());
    x = x * kA + at::mm(square * kB + at::mm(square, square) * kC, x);
  }
  return tall ? x.t() : x;
}

double clip_gradients(std::span<Tensor> gradients, double most) {
  double squares = 0.0;
  for (const Tensor& gradient : gradients) {
    const double norm = at::norm(gradient).item<double>();
    squares += norm * norm;
  }
  const double norm = std::sqrt(squares);
  if (most > 0.0 && norm > most) {
    for (Tensor& gradient : gradients) {
      gradient.mul_(most / norm);
    }
  }
  return norm;
}

}  // namespace octet::train
