// Canonical metadata as the converters of other engines write them to GGUF files: the inverse of
// canonical_metadata.h. Only keys; tensors keep their names. Invariant: what is written here and
// read again gives the same canonical metadata, and nothing is told twice.
#pragma once

#include "octet/tensor/metadata.h"

namespace octet {

/// Metadata for a GGUF file. Keys of other dialects and those that a reader derives by itself are
/// left out, arrays of equal numbers become one number, taps are numbered by the layer whose input
/// they are.
Metadata gguf_metadata(const Metadata& canonical);

}  // namespace octet
