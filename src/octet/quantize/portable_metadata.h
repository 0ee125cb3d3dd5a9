// All that a checkpoint says beside its weights, gathered into one set of canonical metadata: the
// tokenizer and the chat template too, wherever a format keeps them. Not for writing. Invariant:
// what the source says itself is never replaced.
#pragma once

#include <memory>
#include <vector>

#include "octet/tensor/checkpoint.h"
#include "octet/tensor/metadata.h"

namespace octet {

struct PortableMetadata {
  Metadata metadata;
  std::vector<std::shared_ptr<const void>> storage;  // strings of the metadata point into it
};

/// `tokenizer_source` (or null) is asked for the tokenizer where `source` has none: drafters in
/// Hugging Face folders have not. Both must outlive the result. Throws Error(kNotFound) when there
/// is no tokenizer at all, saying how to give one.
PortableMetadata gather_metadata(const Checkpoint& source, const Checkpoint* tokenizer_source);

}  // namespace octet
