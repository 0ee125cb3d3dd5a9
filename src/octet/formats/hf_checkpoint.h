// Translates a Hugging Face directory (config.json, safetensors in one file or sharded) of a Gemma
// 4 target or a DFlash drafter to a canonical Checkpoint. The tokenizer and the chat template stay
// files beside it: sidecars.
#pragma once

#include <memory>
#include <string>

#include "octet/formats/checkpoint_validation.h"
#include "octet/tensor/checkpoint.h"

namespace octet {

/// Errors as open_checkpoint.h says.
std::shared_ptr<const Checkpoint> open_hf_directory(
    const std::string& directory, UnusedTensors unused = UnusedTensors::kLeaveOut
);

/// One .safetensors file with config.json beside it. A shard of a set opens the whole set.
std::shared_ptr<const Checkpoint> open_hf_file(
    const std::string& path, UnusedTensors unused = UnusedTensors::kLeaveOut
);

}  // namespace octet
