// The optimizers by example: AdamW against its formula in float64, Muon's directions, clipping, the
// schedule.
#include <cmath>

#include <gtest/gtest.h>

#include "octet/train/optimizer.h"
#include "support/tensor_rows.h"

namespace octet::test {
namespace {

using at::Tensor;
namespace t = octet::train;

TEST(AdamW, FollowsItsFormula) {
  t::OptimizerSettings settings;
  settings.kind = t::OptimizerKind::kAdamW;
  settings.rate = 0.1;
  settings.weight_decay = 0.5;
  t::Parameters parameters;
  parameters.add("x", at::tensor({3.0F, -2.0F}));
  t::Optimizer optimizer(parameters, settings, [](const t::Parameter&) {
    return t::ParameterRule{true, 0.5};
  });
  double expected[2] = {3.0, -2.0};
  double first[2] = {};
  double second[2] = {};
  for (int step = 0; step < 10; ++step) {
    const Tensor gradient = parameters.at("x").detach() * 2.0 + 1.0;
    optimizer.step(parameters, {&gradient, 1}, step, 0.8);
    for (int i = 0; i < 2; ++i) {
      const double rate = 0.1 * 0.5 * 0.8;
      const double g = 2.0 * expected[i] + 1.0;
      first[i] = 0.9 * first[i] + 0.1 * g;
      second[i] = 0.98 * second[i] + 0.02 * g * g;
      const double m = first[i] / (1.0 - std::pow(0.9, step + 1));
      const double v = second[i] / (1.0 - std::pow(0.98, step + 1));
      expected[i] -= rate * (0.5 * expected[i] + m / (std::sqrt(v) + 1e-8));
      EXPECT_NEAR(parameters.at("x")[i].item<double>(), expected[i], 1e-5);
    }
  }
}

TEST(Muon, DirectionsAreNearlyOrthonormal) {
  at::manual_seed(9);
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{12, 40}, {40, 12}, {16, 16}}) {
    const Tensor x = t::orthogonalized(at::randn(shape) * 7.0);
    const bool tall = shape[0] > shape[1];
    const Tensor gram = tall ? at::mm(x.t(), x) : at::mm(x, x.t());
    const Tensor values = at::linalg_eigvalsh(gram);
    if (shape[0] != shape[1]) {  // a square one may have tiny singular values to begin with
      EXPECT_GT(values.min().item<double>(), 0.3);
    }
    EXPECT_LT(values.max().item<double>(), 1.6);
  }
}

TEST(Muon, StepsTallMatricesFartherAndKeepsVectorsForAdam) {
  t::OptimizerSettings settings;
  t::Parameters parameters;
  parameters.add("tall", at::zeros({64, 4}));
  parameters.add("wide", at::zeros({4, 64}));
  parameters.add("norm", at::zeros({4}));
  t::Optimizer optimizer(parameters, settings, [](const t::Parameter& parameter) {
    return t::ParameterRule{parameter.is_matrix(), 1.0};
  });
  at::manual_seed(10);
  const Tensor gradient = at::randn({64, 4});
  const std::vector<Tensor> gradients = {gradient, gradient.t().contiguous(), at::ones({4})};
  optimizer.step(parameters, gradients, 0, 1.0);
  const double tall = at::norm(parameters.at("tall")).item<double>();
  const double wide = at::norm(parameters.at("wide")).item<double>();
  EXPECT_NEAR(tall / wide, 4.0, 1e-3);
  EXPECT_NEAR(parameters.at("norm")[0].item<double>(), -settings.rate, 1e-6);
  EXPECT_FALSE(optimizer.moments()[0].second.defined());
  EXPECT_TRUE(optimizer.moments()[2].second.defined());
}

TEST(Clipping, BoundsTheCommonNorm) {
  std::vector<Tensor> gradients = {at::full({4}, 3.0), at::full({4}, 4.0)};
  EXPECT_NEAR(t::clip_gradients(gradients, 0.0), 10.0, 1e-5);
  EXPECT_NEAR(gradients[0][0].item<double>(), 3.0, 1e-6);
  EXPECT_NEAR(t::clip_gradients(gradients, 5.0), 10.0, 1e-5);
  EXPECT_NEAR(gradients[0][0].item<double>(), 1.5, 1e-5);
  EXPECT_NEAR(gradients[1][0].item<double>(), 2.0, 1e-5);
}

TEST(Rates, RiseStayAndFallToNearlyZero) {
  const t::Schedule schedule{0.1, 0.5};
  constexpr int64_t kSteps = 100;
  EXPECT_NEAR(schedule.factor(0, kSteps), 0.1, 1e-9);
  EXPECT_NEAR(schedule.factor(9, kSteps), 1.0, 1e-9);
  EXPECT_NEAR(schedule.factor(49, kSteps), 1.0, 1e-9);
  EXPECT_NEAR(schedule.factor(74, kSteps), 0.5, 1e-9);
  for (int64_t step = 50; step < kSteps; ++step) {
    EXPECT_GT(schedule.factor(step, kSteps), 0.0);
    EXPECT_LE(schedule.factor(step, kSteps), schedule.factor(step - 1, kSteps));
  }
}

}  // namespace
}  // namespace octet::test
