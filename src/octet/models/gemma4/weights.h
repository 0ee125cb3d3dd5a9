// The weights of a gemma4 target as plain structs. Norms are decoded once, matrices are prepared
// for the backend, the two embedding tables are read row by row: from the file, from copies, or, if
// there would be a copy of what the head holds already, out of the head. Shapes: D hidden, L
// layers, P per-layer embedding width, V vocabulary, H query heads, K kv heads, d head size, F MLP
// width. A matrix [out, in] maps `in` to `out` features.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "octet/kernels/ops.h"
#include "octet/models/gemma4/config.h"
#include "octet/models/weight_loader.h"

namespace octet {

struct Gemma4Layer {
  std::vector<float> attention_norm;       // [D]
  std::unique_ptr<Weight> query;           // [H*d, D]
  std::unique_ptr<Weight> key;             // [K*d, D]; null in layers that read a donor's
  std::unique_ptr<Weight> value;           // [K*d, D]; null likewise
  std::vector<float> query_norm;           // [d]
  std::vector<float> key_norm;             // [d]
  std::unique_ptr<Weight> output;          // [D, H*d]
  std::vector<float> post_attention_norm;  // [D]

  std::vector<float> mlp_norm;       // [D]
  std::unique_ptr<Weight> gate;      // [F, D]
  std::unique_ptr<Weight> up;        // [F, D]
  std::unique_ptr<Weight> down;      // [D, F]
  std::vector<float> post_mlp_norm;  // [D]

  std::unique_ptr<Weight> ple_gate;        // [P, D]; null when P is 0, as the next two
  std::unique_ptr<Weight> ple_projection;  // [D, P]
  std::vector<float> post_ple_norm;        // [D]

  float scale = 1.0F;  // multiplies the whole residual at the end of the layer
};

struct Gemma4Weights {
  std::shared_ptr<const LogicalTensor> embedding;      // [V, D], by row; null: rows of the head
  std::shared_ptr<const LogicalTensor> ple_embedding;  // [ids, L*P], likewise; null when P is 0
  std::unique_ptr<Weight> ple_model_projection;        // [L*P, D]
  std::vector<float> ple_projection_norm;              // [P]
  std::vector<float> full_rope_divisors;               // [d/2] of full layers
  std::vector<Gemma4Layer> layers;                     // [L]
  std::vector<float> output_norm;                      // [D]
  std::unique_ptr<Weight> head;                        // [V, D]: its own, or the embedding
  const LogicalTensor* head_tensor = nullptr;          // the same, in the file
};

inline constexpr std::string_view kGemma4Embedding = "token_embd.weight";
/// Of the tensor that the head multiplies with: its own, or the embedding.
std::string_view gemma4_head_name(const Checkpoint& checkpoint);

/// The embedding is null where tables go into memory and the head is the embedding.
Gemma4Weights load_gemma4_weights(WeightLoader& loader, const Gemma4Config& config);

}  // namespace octet
