// The config.json and generation_config.json that publishers of Hugging Face checkpoints write,
// from canonical metadata. Covers what the synthetic presets have; the reader in formats/ covers
// everything that is found in the wild.
#pragma once

#include <string>

#include "octet/tensor/metadata.h"

namespace octet::cli {

std::string hf_config(const Metadata& metadata);
std::string hf_generation_config(const Metadata& metadata);

}  // namespace octet::cli
