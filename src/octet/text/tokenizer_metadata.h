// A tokenizer on its way between file formats: the tokenizer.ggml.* metadata of GGUF and the
// tokenizer.json of a Hugging Face folder. Not for tokenizing (tokenizer.h). Invariant: both forms
// give the same Tokenizer; token types follow from the text of a token alone, as converters of
// Gemma 4 assign them.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "octet/tensor/metadata.h"

namespace octet {

struct TokenizerMetadata {
  Metadata metadata;                    // tokenizer.ggml.* keys
  std::shared_ptr<const void> storage;  // what the strings of the metadata point into
};

/// From the content of a tokenizer.json, and of a generation_config.json when not empty (suppressed
/// tokens). Throws Error as TokenizerJson does.
TokenizerMetadata tokenizer_metadata_from_json(
    std::string_view tokenizer_json, std::string_view generation_config_json = {}
);

/// The tokenizer.json of the tokenizer.ggml.* keys. Throws Error(kNotFound) naming a missing key,
/// Error(kMalformed) when token types and tokens differ in number.
std::string tokenizer_json_text(const Metadata& metadata);

/// The tokenizer_config.json that loaders want beside it.
std::string tokenizer_config_json_text(const Metadata& metadata);

}  // namespace octet
