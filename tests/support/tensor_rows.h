// Between the engine's rows and libtorch's tensors, and gradients by finite differences, for tests
// of octet/train.
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "octet/train/tensor.h"
#include "support/model_runs.h"

namespace octet::test {

inline at::Tensor tensor_of(const FloatRows& rows) {
  const auto count = static_cast<int64_t>(rows.size());
  const auto cols = static_cast<int64_t>(rows.at(0).size());
  at::Tensor out = at::empty({count, cols}, at::kFloat);
  for (int64_t r = 0; r < count; ++r) {
    std::memcpy(
        out.data_ptr<float>() + r * cols,
        rows[static_cast<size_t>(r)].data(),
        static_cast<size_t>(cols) * sizeof(float)
    );
  }
  return out;
}

inline double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return at::max(at::abs(a.detach().to(at::kDouble) - b.detach().to(at::kDouble))).item<double>();
}

/// Holds the gradient of `loss` (a scalar of `input`, float64) against central differences at
/// `places` of its values, spread evenly.
inline void expect_gradient(
    at::Tensor& input, const std::function<at::Tensor()>& loss, int64_t places, const char* name
) {
  constexpr double kStep = 1e-5;
  input.mutable_grad() = at::Tensor();
  loss().backward();
  ASSERT_TRUE(input.grad().defined()) << name;
  const at::Tensor gradient = input.grad().clone();
  auto* values = input.data_ptr<double>();
  const at::NoGradGuard no_gradient;
  double largest = 0.0;
  for (int64_t i = 0; i < places; ++i) {
    const int64_t at = i * (input.numel() - 1) / std::max<int64_t>(places - 1, 1);
    const double value = values[at];
    values[at] = value + kStep;
    const double above = loss().item<double>();
    values[at] = value - kStep;
    const double below = loss().item<double>();
    values[at] = value;
    const double expected = (above - below) / (2.0 * kStep);
    const double found = gradient.reshape({-1})[at].item<double>();
    EXPECT_NEAR(found, expected, 1e-6 + 1e-5 * std::abs(expected)) << name << ", value " << at;
    largest = std::max(largest, std::abs(expected));
  }
  EXPECT_GT(largest, 0.0) << name << ": all differences are zero, nothing was tested";
}

}  // namespace octet::test
