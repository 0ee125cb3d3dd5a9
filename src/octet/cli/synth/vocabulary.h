// A made-up vocabulary of any size for checkpoints with random weights: the control tokens of the
// real one, newline and space runs, byte tokens, characters, and words grown from them by merges.
// It is a legal `gemma4` BPE: every merged piece exists, and merges stand in the order in which
// they must be tried. Not meant to compress well; only that any text can be encoded and decoded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/tensor/metadata.h"

namespace octet::cli {

struct SynthVocabulary {
  std::vector<std::string> pieces;
  std::vector<int32_t> types;  // GGUF token types: 1 normal, 2 unknown, 3 control, 5 unused, 6 byte
  std::vector<std::string> merges;  // "left right", best first
};

/// `size` >= 600. From 262,144 on the control tokens stand at the ids of Gemma 4, below that they
/// are packed at the front.
SynthVocabulary make_vocabulary(int64_t size);

/// Adds the tokenizer.ggml.* keys. Their strings point into `vocabulary`, which must outlive the
/// metadata.
void add_tokenizer(Metadata& metadata, const SynthVocabulary& vocabulary);

}  // namespace octet::cli
