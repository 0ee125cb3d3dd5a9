// A backend that watches what the weights of a model are multiplied with, and can put another
// weight in the place of one while the model runs on: what calibrating layer by layer needs. Not
// for importance (collect_importance.h). Invariant: products are those of the wrapped backend with
// the weights that are in place.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "octet/kernels/forwarding_ops.h"
#include "octet/quantize/hessian.h"

namespace octet {

class CalibrationOps final : public ForwardingOps {
 public:
  explicit CalibrationOps(std::unique_ptr<Ops> ops) : ForwardingOps(std::move(ops)) {}

  std::unique_ptr<Weight> prepare(const Checkpoint& owner, const LogicalTensor& tensor) override;
  void matmul(ConstRows x, std::span<const Product> products) override;
  using ForwardingOps::gather_rows;
  void gather_rows(const Weight& weight, std::span<const TokenId> ids, float scale, Rows out)
      override;

  /// From now on: the largest magnitude, as bfloat16, of what each weight is multiplied with.
  void watch_largest() { watch_largest_ = true; }
  /// By weight, of those that were multiplied at all; and stops watching.
  std::map<std::string, float, std::less<>> take_largest();

  /// From now on: the Hessians of these weights. Where an input scale is given, inputs count as
  /// W4A4 rounds them (tensor/nvfp4_activations.h).
  using InputScales = std::map<std::string, std::optional<float>, std::less<>>;
  void watch_hessians(InputScales weights) { watched_ = std::move(weights); }
  /// Hessian::take_mean() of one of them, once; empty if it was not multiplied.
  std::vector<double> take_hessian(const std::string& weight);

  /// Puts another weight of the same name and shape in place, which multiplies as the metadata of
  /// `owner` say. The model must be alive.
  void replace(const Checkpoint& owner, const LogicalTensor& tensor);

 private:
  struct HeldWeight;

  void watch(ConstRows x, std::span<const Product> products);
  void add_hessian(ConstRows x, const std::vector<std::string>& names);

  std::map<std::string, HeldWeight*, std::less<>> held_;
  bool watch_largest_ = false;
  std::map<std::string, float, std::less<>> largest_;
  InputScales watched_;
  struct SharedHessian {
    Hessian hessian;
    size_t users = 0;  // that have not taken it yet
  };
  /// By the weights that share their input in a call; that of a weight is the sum over all calls.
  std::map<std::vector<std::string>, SharedHessian> hessians_;
};

}  // namespace octet
