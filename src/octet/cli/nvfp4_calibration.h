// Calibrates NVFP4 weights for `octet quantize`: loads the model that they belong to, runs text
// through it, and says what was found. Not for how weights are rounded
// (quantize/calibrate_nvfp4.h). Invariant: the plan and the result belong together.
#pragma once

#include <memory>

#include "octet/base/thread_pool.h"
#include "octet/cli/options.h"
#include "octet/quantize/calibrate_nvfp4.h"
#include "octet/quantize/checkpoint_plan.h"
#include "octet/tensor/checkpoint.h"

namespace octet::cli {

/// Whether the arguments ask for calibration. Throws Error(kInvalidArgument) when they contradict
/// themselves or the kind of `source`.
bool wants_calibration(const QuantizeArguments& arguments, const Checkpoint& source);

/// Throws Error as loading models and cut_chunks do.
CalibratedWeights calibrate_plan(
    const QuantizeArguments& arguments,
    const std::shared_ptr<const Checkpoint>& source,
    CheckpointPlan& plan,
    ThreadPool& pool
);

}  // namespace octet::cli
