// Holds the tensors that a file offers against the ones that its metadata call for, and builds the
// Checkpoint from those that match. Needs metadata arithmetic only: no tensor byte is touched, so a
// 5 GB file is checked at once.
#pragma once

#include <vector>

#include "octet/tensor/checkpoint.h"
#include "octet/tensor/logical_tensor.h"

namespace octet {

/// Keys and values of layers that share another layer's cache may stand in a file; nobody computes
/// with them. Tools that write files anew keep them.
enum class UnusedTensors { kLeaveOut, kKeep };

/// Adds `tensors` (canonical names) to `checkpoint`, whose metadata are canonical already. Leading
/// dimensions of 1 are ignored in the comparison and normalised to the expected shape; unused
/// tensors are left out unless told otherwise. Throws Error: kMismatch for a wrong shape (tensor,
/// expected and found shape), kNotFound for missing and kUnsupported for unknown tensors (all of
/// them named, up to a few).
void add_validated_tensors(
    Checkpoint& checkpoint, std::vector<LogicalTensor> tensors, UnusedTensors unused
);

/// Checks every value of every tensor (tensor/check_values.h); errors carry the checkpoint's path.
/// Touches all pages: for `--check-tensors`, not for every start.
void check_tensor_values(const Checkpoint& checkpoint);

}  // namespace octet
