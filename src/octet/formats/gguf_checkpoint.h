// Translates GGUF files of a gemma4 target or a dflash drafter, in any dialect, to a canonical
// Checkpoint.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "octet/formats/checkpoint_validation.h"
#include "octet/formats/gguf_reader.h"
#include "octet/tensor/checkpoint.h"

namespace octet {

/// `path` may name any part of a split file. Errors as open_checkpoint.h says.
std::shared_ptr<const Checkpoint> open_gguf_checkpoint(
    const std::string& path, UnusedTensors unused = UnusedTensors::kLeaveOut
);

/// The same from parts that are parsed already, in order. The checkpoint keeps their mappings;
/// bytes of parts that were parsed from memory must outlive it.
std::shared_ptr<const Checkpoint> checkpoint_from_gguf(
    std::vector<GgufFile> parts,
    const std::string& path,
    UnusedTensors unused = UnusedTensors::kLeaveOut
);

}  // namespace octet
