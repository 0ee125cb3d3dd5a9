// From a checkpoint to a model that runs: the one place that maps architectures to classes. Add a
// model here.
#pragma once

#include <memory>

#include "octet/kernels/ops.h"
#include "octet/models/dflash/forward.h"
#include "octet/models/draft_model.h"
#include "octet/models/gemma4/forward.h"
#include "octet/models/target_model.h"
#include "octet/tensor/checkpoint.h"

namespace octet {

/// Throws Error: kUnsupported for another architecture, else what the model finds wrong. Keeps the
/// checkpoint; `ops` must outlive the model.
std::unique_ptr<TargetModel> load_target(
    std::shared_ptr<const Checkpoint> checkpoint, Ops& ops, TargetOptions options
);

/// `target` lends its embedding and head and must outlive the drafter. Throws Error(kMismatch) when
/// the two do not fit together, with what was expected and what was found.
std::unique_ptr<DraftModel> load_drafter(
    std::shared_ptr<const Checkpoint> checkpoint,
    Ops& ops,
    TargetModel& target,
    DrafterOptions options
);

}  // namespace octet
