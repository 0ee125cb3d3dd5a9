// Calibrates weights that are to become NVFP4 of ModelOpt on text: input scales for W4A4, and
// rounding with errors carried over (GPTQ) from the first layer to the last, where the inputs of a
// layer are those that the layers before it give after they were rounded. Knows no files and no
// models. Invariant: results depend on the weights and on what the model multiplies with them, not
// on threads. Memory: the rounded weights, and the Hessians of one layer in float64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/thread_pool.h"
#include "octet/quantize/calibration_ops.h"
#include "octet/quantize/checkpoint_plan.h"
#include "octet/tensor/checkpoint.h"

namespace octet {

/// Runs all text through the model whose backend is the CalibrationOps, at least through this layer
/// (kAllLayers: and the head).
inline constexpr int64_t kAllLayers = INT64_MAX;
using RunCalibration = std::function<void(int64_t last_layer)>;
/// "Layer 3", and how many of how many such parts are done.
using OnCalibration = std::function<void(std::string_view part, int64_t done, int64_t parts)>;

struct CalibrationRequest {
  const Checkpoint& source;  // its general.quant_algo says how NVFP4 multiplies meanwhile
  CalibrationOps& ops;
  ThreadPool& pool;
  bool gptq = false;
  bool input_scales = false;
  RunCalibration run;
  OnCalibration on_part;
};

/// Owns the weights that a calibrated plan points to.
struct CalibratedWeights {
  std::deque<LogicalTensor> tensors;
  std::deque<std::vector<std::byte>> storage;
  std::vector<std::string> unused;      // never multiplied: rounded plainly
  std::vector<std::string> indefinite;  // their Hessians could not be inverted: rounded plainly
};

/// Throws Error(kInvalidArgument) when `plan` has nothing to round (gptq), or nothing to calibrate
/// at all: known before a model is loaded.
void refuse_idle_calibration(const CheckpointPlan& plan, bool gptq);

/// Every weight that `plan` turns into NVFP4 gets an input scale or rounded values, as asked for;
/// the plan then points to those. Weights that are NVFP4 already keep their values. Throws as
/// refuse_idle_calibration() does.
CalibratedWeights calibrate_nvfp4(CheckpointPlan& plan, const CalibrationRequest& request);

}  // namespace octet
