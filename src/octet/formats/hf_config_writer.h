// The config.json, generation_config.json and hf_quant_config.json of a Hugging Face folder, from
// canonical metadata: the inverse of hf_config.h. Knows keys, never tensors. Invariant: what is
// written here and read again gives the same canonical metadata; what the format cannot say is
// refused by name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/tensor/dtype.h"
#include "octet/tensor/metadata.h"

namespace octet {

struct HfNvfp4Module {
  std::string name;
  bool calibrated = false;  // it has an input scale
};

/// What tensors tell and metadata do not.
struct HfTensorFacts {
  double partial_rotary_factor = 0.25;  // gemma4: from the divisors of full-attention layers
  bool own_head = false;                // there is an lm_head.weight
  int64_t per_layer_vocabulary = 0;     // gemma4: rows of the per-layer table; 0: the vocabulary's
  DType prevailing = DType::kBF16;      // of the float types, by values stored
  std::vector<HfNvfp4Module> nvfp4_modules;
  std::vector<std::string> full_precision_modules;  // linear modules that are not NVFP4
};

/// Throws Error(kUnsupported) for attention patterns that a drafter's config.json has no words for.
std::string hf_config(const Metadata& metadata, const HfTensorFacts& facts);

std::string hf_generation_config(const Metadata& metadata);

/// For folders with NVFP4 weights.
std::string hf_quantization_config(const Metadata& metadata, const HfTensorFacts& facts);

}  // namespace octet
