// The shapes that `octet synth` can write: full-size stand-ins for the real pair, and a small one
// for tests. Only hyperparameters, in the canonical metadata of tensor/checkpoint.h; weights and
// vocabulary come from the other files of this folder.
#pragma once

#include <string_view>

#include "octet/tensor/metadata.h"

namespace octet::cli {

enum class SynthPreset {
  kBoltE4b,  // 42 layers, hidden 2560, vocabulary 262,144; drafter of 5 layers, taps 5 11 17 23 35
  kTiny,     // 6 layers, hidden 256, vocabulary 1,024, window 32; drafter of 2 layers, taps 1 2 3 4
};

std::string_view preset_name(SynthPreset preset);

/// Metadata of a `gemma4` target, without tokenizer keys.
Metadata target_metadata(SynthPreset preset);

/// Metadata of a `dflash` drafter for that target, without tokenizer keys.
Metadata drafter_metadata(SynthPreset preset);

}  // namespace octet::cli
