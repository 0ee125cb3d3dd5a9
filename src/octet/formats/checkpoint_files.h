// Which files checkpoints were read from, so that no output takes the place of one. Not for reading
// them. Invariant: every file that open_checkpoint() looked at is among them, whichever of them was
// named.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "octet/tensor/checkpoint.h"

namespace octet {

/// `others`, and for every checkpoint that is not null its path as it was named, all its parts or
/// shards, and the texts beside them, of which some may not exist.
std::vector<std::string> all_inputs(
    std::initializer_list<std::shared_ptr<const Checkpoint>> checkpoints,
    std::vector<std::string> others
);

}  // namespace octet
