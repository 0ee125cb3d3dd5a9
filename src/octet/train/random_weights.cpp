#include "octet/train/random_weights.h"

#include <cmath>
#include <numbers>

#include "octet/base/philox.h"

namespace octet::train {
namespace {

constexpr uint32_t kPurpose = 0x5EED;

}  // namespace

Tensor RandomWeights::normal(const std::vector<int64_t>& shape, double deviation) {
  Tensor values = at::empty(shape, at::kFloat);
  const int64_t tensor = tensors_++;
  auto* out = values.data_ptr<float>();
  for (int64_t i = 0; i < values.numel(); i += 2) {
    // Box and Muller: two uniform numbers are two normal ones.
    const auto words = philox_words(seed_, tensor, kPurpose, static_cast<uint32_t>(i / 2));
    const double radius = deviation * std::sqrt(-2.0 * std::log(unit_interval(words[0])));
    const double angle = 2.0 * std::numbers::pi * unit_interval(words[1]);
    out[i] = static_cast<float>(radius * std::cos(angle));
    if (i + 1 < values.numel()) {
      out[i + 1] = static_cast<float>(radius * std::sin(angle));
    }
  }
  return values;
}

}  // namespace octet::train
