// A number that tells checkpoints apart: names, types and shapes of all tensors, and the first
// bytes of each. For seeing that two files were made with one model; not against anybody who wants
// a collision. Invariant: the same file gives the same number everywhere; a few kilobytes a tensor
// are read.
#pragma once

#include <cstdint>

#include "octet/tensor/checkpoint.h"

namespace octet {

uint64_t checkpoint_digest(const Checkpoint& checkpoint);

}  // namespace octet
