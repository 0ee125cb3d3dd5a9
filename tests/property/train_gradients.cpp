// Gradients against central differences in float64: every operation, the frozen head's loss, and
// the drafter as a whole, parameter by parameter.
#include <gtest/gtest.h>

#include "octet/train/drafter_network.h"
#include "octet/train/head_loss.h"
#include "support/random_models.h"
#include "support/tensor_rows.h"

namespace octet::test {
namespace {

using at::Tensor;
namespace t = octet::train;

Tensor random_leaf(std::vector<int64_t> shape) {
  Tensor values = at::randn(shape, at::kDouble);
  values.set_requires_grad(true);
  return values;
}

/// A scalar that weighs every value of `x` differently.
Tensor weighed(const Tensor& x) {
  const Tensor weights = at::cos(at::arange(x.numel(), at::kDouble) * 0.7 + 0.3);
  return at::dot(x.reshape({-1}), weights);
}

TEST(Gradients, Operations) {
  at::manual_seed(1);
  Tensor x = random_leaf({6, 8});
  Tensor y = random_leaf({6, 8});
  Tensor w = random_leaf({8});
  const auto norm = [&] { return weighed(t::rms_norm(x, w, 1e-6)); };
  expect_gradient(x, norm, 48, "norm, input");
  expect_gradient(w, norm, 8, "norm, weight");
  expect_gradient(
      x, [&] { return weighed(t::rms_norm(x, Tensor(), 1e-6)); }, 48, "norm without weight"
  );
  const t::Angles angles = t::rope_angles(at::arange(6, at::kLong) + 5, 1e4, 4, 1, at::kDouble);
  expect_gradient(
      x,
      [&] {
        return weighed(t::rotate(x.reshape({6, 2, 4}), angles.cosines, angles.sines));
      },
      48,
      "rotation of a part"
  );
  for (auto* gate : {t::silu_gate, t::gelu_gate}) {
    expect_gradient(
        x, [&] { return weighed(gate(x, y)); }, 48, "gate"
    );
    expect_gradient(
        y, [&] { return weighed(gate(x, y)); }, 48, "gated"
    );
  }
  Tensor weight = random_leaf({5, 8});
  const auto product = [&] { return weighed(t::linear(x, weight, t::Precision::kFull)); };
  expect_gradient(x, product, 48, "product, input");
  expect_gradient(weight, product, 40, "product, weight");
}

TEST(Gradients, LossOfAHead) {
  at::manual_seed(2);
  Tensor states = random_leaf({7, 8});
  const t::OutputHead head = {at::randn({11, 8}, at::kDouble) * 4.0, 5.0, t::Precision::kFull};
  t::HeadLossRows rows;
  rows.labels = at::randint(0, 11, {7}, at::kLong);
  rows.weights = at::rand({7}, at::kDouble);
  expect_gradient(
      states, [&] { return t::head_loss(states, head, rows).loss; }, 56, "labels"
  );
  rows.teacher = at::randn({7, 11}, at::kDouble);
  expect_gradient(
      states, [&] { return t::head_loss(states, head, rows).loss; }, 56, "teacher"
  );
}

/// Parts of two rows give what one part of all rows gives, and a head that trains its gradient.
TEST(Gradients, LossOfATrainingHeadInParts) {
  at::manual_seed(5);
  Tensor states = random_leaf({7, 8});
  Tensor weight = random_leaf({11, 8});
  const t::OutputHead head = {weight, 5.0, t::Precision::kFull};
  t::HeadLossRows rows;
  rows.labels = at::randint(0, 11, {7}, at::kLong);
  rows.weights = at::rand({7}, at::kDouble);
  for (const bool taught : {false, true}) {
    if (taught) {
      rows.teacher = at::randn({7, 11}, at::kDouble);
    }
    const auto in_parts = [&] { return t::head_loss(states, head, rows, 2).loss; };
    expect_gradient(states, in_parts, 56, "parts, states");
    expect_gradient(weight, in_parts, 88, "parts, head");
    const t::HeadLoss whole = t::head_loss(states, head, rows, 7);
    const t::HeadLoss parts = t::head_loss(states, head, rows, 2);
    EXPECT_NEAR(parts.loss.item<double>(), whole.loss.item<double>(), 1e-12);
    EXPECT_TRUE(at::equal(parts.hits, whole.hits));
    ASSERT_EQ(parts.hits.size(0), 7);
  }
}

/// Rounding the operands changes a product by no more than they are rounded: 2^-9 each.
TEST(Gradients, RoundedProductsAreNearExactOnes) {
  at::manual_seed(3);
  Tensor x = at::randn({16, 64});
  Tensor w = at::randn({24, 64});
  x.set_requires_grad(true);
  w.set_requires_grad(true);
  const Tensor bound = at::mm(at::abs(x), at::abs(w).t()).detach() * (3.0 / 256.0);
  const Tensor rounded = t::linear(x, w, t::Precision::kBF16);
  const Tensor exact = t::linear(x, w, t::Precision::kFull);
  EXPECT_TRUE(at::all(at::abs(rounded - exact) <= bound).item<bool>());
  EXPECT_GT(largest_difference(rounded, exact), 0.0);
  rounded.sum().backward();
  EXPECT_LT(largest_difference(x.grad(), w.detach().sum(0).expand({16, 64})), 0.5);
  EXPECT_LT(largest_difference(w.grad(), x.detach().sum(0).expand({24, 64})), 0.5);
}

t::DraftBlocks random_blocks(const DFlashConfig& config, int64_t vocabulary) {
  t::DraftBlocks blocks;
  const auto width = static_cast<int64_t>(config.taps.size()) * config.hidden;
  // Two sequences of 20 and 9 rows; anchors at the very start, inside, and behind the last row.
  blocks.features = at::randn({29, width}, at::kDouble);
  blocks.feature_positions = at::cat({at::arange(20, at::kLong), at::arange(9, at::kLong)});
  blocks.anchor_positions = at::tensor({0, 3, 19, 0, 9}, at::kLong);
  blocks.anchor_rows = at::tensor({0, 3, 19, 20, 29}, at::kLong);
  blocks.anchor_tokens = at::randint(0, vocabulary, {5}, at::kLong);
  return blocks;
}

TEST(Gradients, WholeDrafter) {
  at::manual_seed(4);
  DFlashShape shape;
  shape.hidden = 16;
  shape.feed_forward = 24;
  shape.window = 12;
  shape.windowed = {true, false, true};
  shape.causal = {false, false, true};
  const auto checkpoint = make_dflash(shape, 5);
  const DFlashConfig config = read_dflash_config(*checkpoint);
  t::Parameters parameters;
  for (const LogicalTensor& tensor : checkpoint->tensors()) {
    parameters.add(tensor.name, t::decoded(tensor).to(at::kDouble));
  }
  const Tensor table = at::randn({shape.vocabulary, shape.hidden}, at::kDouble);
  const t::DrafterNetwork network(config, table, 2.0, t::Precision::kFull);
  const t::DraftBlocks blocks = random_blocks(config, shape.vocabulary);
  const int64_t rows = 5 * (config.block - 1);
  const t::OutputHead head = {table, 30.0, t::Precision::kFull};
  t::HeadLossRows targets;
  targets.labels = at::randint(0, shape.vocabulary, {rows}, at::kLong);
  targets.weights = at::rand({rows}, at::kDouble);
  const auto loss = [&] {
    return t::head_loss(network.states(parameters, blocks), head, targets).loss;
  };
  for (t::Parameter& parameter : parameters.all()) {
    expect_gradient(parameter.value, loss, 4, parameter.name.c_str());
  }
}

}  // namespace
}  // namespace octet::test
