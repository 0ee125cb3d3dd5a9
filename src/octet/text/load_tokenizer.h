// Where a tokenizer comes from: the tokenizer.ggml.* metadata of a checkpoint or the tokenizer.json
// beside it. Not for how it works (tokenizer.h). The model name decides the algorithm, never the
// presence of merges or scores.
#pragma once

#include <memory>
#include <string_view>

#include "octet/tensor/checkpoint.h"
#include "octet/text/tokenizer.h"

namespace octet {

/// From the metadata tokenizer.ggml.* when present, else from the sidecar "tokenizer.json" (with
/// the stop ids of "generation_config.json" and of the metadata). The tokenizer keeps no reference
/// to the checkpoint. Throws Error: kNotFound when there is neither, kUnsupported for another kind
/// of tokenizer, kMalformed naming what is wrong.
std::shared_ptr<const Tokenizer> load_tokenizer(const Checkpoint& checkpoint);

/// From the content of a tokenizer.json, and of a generation_config.json when not empty.
std::shared_ptr<const Tokenizer> tokenizer_from_json(
    std::string_view tokenizer_json, std::string_view generation_config_json = {}
);

}  // namespace octet
