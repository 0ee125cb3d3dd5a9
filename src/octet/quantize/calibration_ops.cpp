#include "octet/quantize/calibration_ops.h"

#include <algorithm>
#include <cmath>

#include "octet/base/check.h"
#include "octet/tensor/nvfp4_activations.h"
#include "octet/tensor/types/float_formats.h"

namespace octet {
namespace {

/// The rows as products in W4A4 see them.
std::vector<float> rounded_rows(ConstRows x, float input_scale) {
  std::vector<float> rounded(static_cast<size_t>(x.rows * x.cols));
  for (int64_t r = 0; r < x.rows; ++r) {
    float* out = rounded.data() + r * x.cols;
    for (int64_t c = 0; c < x.cols; c += kNvfp4ActivationBlock) {
      const Nvfp4ActivationBlock block = round_nvfp4_activations(x.row(r) + c, input_scale);
      for (const int8_t code : block.doubled_codes) {
        *out++ = 0.5F * static_cast<float>(code) * block.scale * input_scale;
      }
    }
  }
  return rounded;
}

}  // namespace

/// What models hold: products go to the weight inside.
struct CalibrationOps::HeldWeight final : Weight {
  std::unique_ptr<Weight> inner;

  /// What models see of a weight is what the one inside says.
  void hold(std::unique_ptr<Weight> weight) {
    inner = std::move(weight);
    static_cast<Weight&>(*this) = *inner;
  }
  /// Of a weight that prepare() gave.
  static const Weight& inside(const Weight& weight) {
    const auto* held = dynamic_cast<const HeldWeight*>(&weight);
    OCTET_CHECK(held != nullptr);
    return *held->inner;
  }
};

std::unique_ptr<Weight> CalibrationOps::prepare(
    const Checkpoint& owner, const LogicalTensor& tensor
) {
  auto held = std::make_unique<HeldWeight>();
  held->hold(wrapped().prepare(owner, tensor));
  held_[tensor.name] = held.get();
  return held;
}

void CalibrationOps::replace(const Checkpoint& owner, const LogicalTensor& tensor) {
  const auto place = held_.find(tensor.name);
  OCTET_CHECK(place != held_.end());
  HeldWeight& held = *place->second;
  OCTET_CHECK(held.rows == tensor.rows() && held.cols == tensor.cols());
  held.inner.reset();  // never both in memory
  held.hold(wrapped().prepare(owner, tensor));
}

void CalibrationOps::matmul(ConstRows x, std::span<const Product> products) {
  watch(x, products);
  std::vector<Product> inner;
  for (const Product& product : products) {
    inner.push_back({&HeldWeight::inside(*product.weight), product.out});
  }
  wrapped().matmul(x, inner);
}

void CalibrationOps::gather_rows(
    const Weight& weight, std::span<const TokenId> ids, float scale, Rows out
) {
  wrapped().gather_rows(HeldWeight::inside(weight), ids, scale, out);
}

void CalibrationOps::watch(ConstRows x, std::span<const Product> products) {
  if (x.rows == 0) {
    return;
  }
  std::vector<std::string> names;
  for (const Product& product : products) {
    if (watched_.contains(product.weight->name)) {
      names.push_back(product.weight->name);
    }
  }
  if (!names.empty()) {
    add_hessian(x, names);
  }
  if (!watch_largest_) {
    return;
  }
  float largest = 0.0F;
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.cols; ++c) {
      largest = std::max(largest, std::fabs(x.row(r)[c]));
    }
  }
  for (const Product& product : products) {
    float& known = largest_[product.weight->name];
    known = std::max(known, bf16_to_f32(f32_to_bf16(largest)));
  }
}

void CalibrationOps::add_hessian(ConstRows x, const std::vector<std::string>& names) {
  auto place = hessians_.find(names);
  if (place == hessians_.end()) {
    place = hessians_.emplace(names, SharedHessian{Hessian(x.cols), names.size()}).first;
  }
  Hessian& hessian = place->second.hessian;
  const std::optional<float> input_scale = watched_.at(names.front());
  if (!input_scale) {
    hessian.add(x, wrapped());
    return;
  }
  const std::vector<float> rounded = rounded_rows(x, *input_scale);
  hessian.add({rounded.data(), x.rows, x.cols, x.cols}, wrapped());
}

std::map<std::string, float, std::less<>> CalibrationOps::take_largest() {
  watch_largest_ = false;
  return std::exchange(largest_, {});
}

std::vector<double> CalibrationOps::take_hessian(const std::string& weight) {
  std::optional<Hessian> sum;
  for (auto place = hessians_.begin(); place != hessians_.end();) {
    const std::vector<std::string>& names = place->first;
    if (std::find(names.begin(), names.end(), weight) == names.end()) {
      ++place;
      continue;
    }
    // The last of the users takes it away, so that the largest, which have one, are never copied.
    const bool last = --place->second.users == 0;
    Hessian hessian = last ? std::move(place->second.hessian) : place->second.hessian;
    place = last ? hessians_.erase(place) : std::next(place);
    if (sum) {
      sum->add(std::move(hessian), wrapped());
    } else {
      sum = std::move(hessian);
    }
  }
  return sum ? sum->take_mean(wrapped()) : std::vector<double>();
}

}  // namespace octet
