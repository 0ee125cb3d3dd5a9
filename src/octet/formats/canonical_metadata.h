// Brings the metadata of every GGUF dialect of gemma4 and dflash to the one vocabulary of
// open_checkpoint.h. Only adds and replaces keys: what a file says beyond them stays for tools to
// show. Invariant: afterwards the keys listed in open_checkpoint.h are present in their canonical
// types; whether their values make sense is checked by model_metadata.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "octet/tensor/metadata.h"

namespace octet {

/// True for every architecture name under which a dflash drafter is written.
bool is_dflash_dialect(std::string_view architecture);

/// gemma4: per-layer arrays for scalar-or-array keys, the window pattern as booleans, the
/// vocabulary size from `embedding_rows` when the file does not say it.
void canonicalise_gemma4(Metadata& metadata, int64_t embedding_rows);

/// A drafter of any dialect: keys under "dflash.", zero-based taps, resolved windows and causality,
/// the mask token. Throws Error(kNotFound) when the taps, the block size or the mask token are not
/// told.
void canonicalise_dflash(Metadata& metadata);

/// How a drafter's layers see keys, by layer.
struct DraftAttention {
  int64_t window = 0;          // positions, the query's own included; 0 when no layer is windowed
  std::vector<bool> windowed;  // [layers]
  std::vector<bool> causal;    // [layers], inside the block
};
void set_draft_attention(Metadata& metadata, const DraftAttention& attention);

/// Sets an array of u32; throws Error(kMalformed) naming the key when a value does not fit.
void set_u32_array(Metadata& metadata, const std::string& key, const std::vector<int64_t>& values);

}  // namespace octet
