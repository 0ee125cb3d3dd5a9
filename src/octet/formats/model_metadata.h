// The numbers of canonical metadata that fix tensor shapes, read and range-checked once. Not the
// models' own configuration (that is models/*/config): this is only as much as files must be
// checked with. Invariant: every number is within its limits, so products of two of them fit 64
// bits.
#pragma once

#include <cstdint>
#include <vector>

#include "octet/tensor/metadata.h"

namespace octet {

struct Gemma4Dimensions {
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t vocabulary = 0;
  int64_t heads = 0;
  int64_t head_dim_full = 0;
  int64_t head_dim_sliding = 0;
  int64_t per_layer_input = 0;    // width of the per-layer embeddings, 0: none
  int64_t shared_layers = 0;      // the last so many layers have no keys and values of their own
  std::vector<int64_t> ffn;       // [layers]
  std::vector<int64_t> kv_heads;  // [layers]
  std::vector<bool> sliding;      // [layers]

  int64_t head_dim(int64_t layer) const {
    return sliding[static_cast<size_t>(layer)] ? head_dim_sliding : head_dim_full;
  }
  bool owns_kv(int64_t layer) const { return layer < layers - shared_layers; }
};

struct DflashDimensions {
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t ffn = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t taps = 0;
  int64_t vocabulary = 0;  // 0: unknown
};

// Both read canonical metadata and throw Error: a key missing, of the wrong type, out of range, or
// a feature that octet does not have (kUnsupported).
Gemma4Dimensions gemma4_dimensions(const Metadata& metadata);
DflashDimensions dflash_dimensions(const Metadata& metadata);

/// Number of layers, "<architecture>.block_count", within the limit.
int64_t layer_count(const Metadata& metadata, const std::string& architecture);

}  // namespace octet
