// The one door from files to a Checkpoint: whatever lies at a path is recognised from its content,
// checked, and translated to the canonical vocabulary of tensor/checkpoint.h. Not for other GGUF
// files (importance matrices, towers, adapters): those are read with gguf_reader.h. Invariant: a
// Checkpoint that comes out of here has every tensor its metadata calls for, in the right shape,
// and no other; nobody behind this door checks files again.
//
// Beyond the keys of GGUF these canonical keys are always set (so models and tools need no
// fallbacks):
//   <arch>.vocab_size                  rows of the embedding (gemma4) or of the vocabulary meant
//   (dflash, when known) gemma4.feed_forward_length         array of u32, one a layer
//   gemma4.attention.head_count_kv     array of u32, one a layer
//   gemma4.attention.sliding_window_pattern,
//   dflash.attention.{sliding_window_pattern,causal_pattern}: arrays of bool
//   dflash.target_layer_ids            array of u32, zero-based layer outputs
//   dflash.attention.sliding_window    0 when no layer is windowed
// and these when the source says so:
//   tokenizer.ggml.eos_token_ids       array of u32: every end token of generation_config.json
//   general.sampling.{temp,top_k,top_p,min_p,penalty_repeat}, dflash.target_block_count
//   (num_target_layers) general.quant_algo                 ModelOpt's name, e.g. "W4A16_NVFP4"
#pragma once

#include <memory>
#include <string>

#include "octet/formats/checkpoint_validation.h"
#include "octet/tensor/checkpoint.h"

namespace octet {

/// Opens a GGUF file (any part of a split one), a .safetensors file with config.json beside it, or
/// a Hugging Face directory. Throws Error: kNotFound, kIo (cannot be read), kMalformed (breaks its
/// format), kUnsupported (well formed, but not something octet runs), kMismatch (tensors and
/// metadata disagree).
std::shared_ptr<const Checkpoint> open_checkpoint(
    const std::string& path, UnusedTensors unused = UnusedTensors::kLeaveOut
);

}  // namespace octet
