// Writes a synthetic checkpoint to disk, tensor by tensor, so that one of any size needs little
// memory: as one GGUF file, or as a Hugging Face folder with config.json, generation_config.json,
// tokenizer.json and model.safetensors. Invariant: what is written opens with open_checkpoint()
// and, for a target and a drafter of one preset, pairs.
#pragma once

#include <cstdint>

#include "octet/base/function_ref.h"
#include "octet/cli/options.h"

namespace octet::cli {

struct SynthProgress {
  std::string_view tensor;
  int64_t done_bytes = 0;
  int64_t total_bytes = 0;
};

/// Returns the bytes of tensors written. Throws Error(kUnsupported) for a format that cannot hold
/// the types asked for.
int64_t write_synthetic_checkpoint(
    const SynthArguments& arguments, FunctionRef<void(const SynthProgress&)> on_progress
);

}  // namespace octet::cli
