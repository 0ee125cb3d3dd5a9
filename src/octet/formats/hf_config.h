// Translates a Hugging Face config.json of Gemma 4 or of a DFlash drafter to canonical metadata.
// Knows keys and defaults, never tensors. Invariant: a switch that would change the computation and
// that octet does not have is refused by name; nothing is guessed silently.
#pragma once

#include <string>

#include "octet/formats/json_value.h"
#include "octet/tensor/metadata.h"

namespace octet {

struct HfConfig {
  Metadata metadata;                   // canonical, see open_checkpoint.h
  double partial_rotary_factor = 1.0;  // gemma4: full-attention layers
  bool tied_head = true;  // gemma4: the head is the embedding, an lm_head tensor is a copy
};

/// `config` is the parsed config.json. Errors name the key; the caller adds the file.
HfConfig read_hf_config(const JsonValue& config);

/// Adds what generation_config.json says: end tokens and recommended sampling.
void add_generation_config(Metadata& metadata, const JsonValue& generation);

/// Refuses quantisation schemes other than NVFP4 by name and records the algorithm. `quantization`
/// is the "quantization_config" of config.json (flat or nested) or the whole hf_quant_config.json.
/// How a tensor is stored is decided by the tensors themselves.
void add_quantization_config(Metadata& metadata, const JsonValue& quantization);

}  // namespace octet
