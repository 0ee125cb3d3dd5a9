#include "octet/models/gemma4/weights.h"

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace octet {
namespace {

std::string layer_name(int64_t layer, std::string_view part) {
  return fmt::format("blk.{}.{}.weight", layer, part);
}

void load_attention(WeightLoader& loader, const Gemma4Config& config, int64_t l, Gemma4Layer& out) {
  const Gemma4LayerConfig& c = config.layer(l);
  const int64_t query_width = int64_t{c.heads} * c.head_dim;
  const int64_t kv_width = int64_t{c.kv_heads} * c.head_dim;
  out.attention_norm = loader.vector(layer_name(l, "attn_norm"), config.hidden);
  out.query = loader.matrix(layer_name(l, "attn_q"), query_width, config.hidden);
  out.query_norm = loader.vector(layer_name(l, "attn_q_norm"), c.head_dim);
  if (c.owns_kv) {  // some files hold these for every layer; those of shared layers are never read
    out.key = loader.matrix(layer_name(l, "attn_k"), kv_width, config.hidden);
    out.value = loader.matrix(layer_name(l, "attn_v"), kv_width, config.hidden);
    out.key_norm = loader.vector(layer_name(l, "attn_k_norm"), c.head_dim);
  }
  out.output = loader.matrix(layer_name(l, "attn_output"), config.hidden, query_width);
  out.post_attention_norm = loader.vector(layer_name(l, "post_attention_norm"), config.hidden);
}

void load_mlp(WeightLoader& loader, const Gemma4Config& config, int64_t l, Gemma4Layer& out) {
  const int64_t width = config.layer(l).feed_forward;
  out.mlp_norm = loader.vector(layer_name(l, "ffn_norm"), config.hidden);
  out.gate = loader.matrix(layer_name(l, "ffn_gate"), width, config.hidden);
  out.up = loader.matrix(layer_name(l, "ffn_up"), width, config.hidden);
  out.down = loader.matrix(layer_name(l, "ffn_down"), config.hidden, width);
  out.post_mlp_norm = loader.vector(layer_name(l, "post_ffw_norm"), config.hidden);
}

Gemma4Layer load_layer(WeightLoader& loader, const Gemma4Config& config, int64_t l) {
  Gemma4Layer layer;
  load_attention(loader, config, l, layer);
  load_mlp(loader, config, l, layer);
  if (config.ple_width > 0) {
    layer.ple_gate = loader.matrix(layer_name(l, "inp_gate"), config.ple_width, config.hidden);
    layer.ple_projection = loader.matrix(layer_name(l, "proj"), config.hidden, config.ple_width);
    layer.post_ple_norm = loader.vector(layer_name(l, "post_norm"), config.hidden);
  }
  const std::vector<float> scale = loader.optional_vector(layer_name(l, "layer_output_scale"), 1);
  layer.scale = scale.empty() ? 1.0F : scale[0];
  return layer;
}

/// Files without divisors mean the published model's: a quarter of the pairs rotates.
std::vector<float> default_rope_divisors(int pairs) {
  constexpr float kNever = 1e30F;
  std::vector<float> divisors(static_cast<size_t>(pairs), kNever);
  for (int i = 0; i < pairs / 4; ++i) {
    divisors[static_cast<size_t>(i)] = 1.0F;
  }
  return divisors;
}

}  // namespace

std::string_view gemma4_head_name(const Checkpoint& checkpoint) {
  return checkpoint.find("output.weight") != nullptr ? "output.weight" : kGemma4Embedding;
}

Gemma4Weights load_gemma4_weights(WeightLoader& loader, const Gemma4Config& config) {
  Gemma4Weights weights;
  const std::string_view head = gemma4_head_name(loader.checkpoint());
  if (loader.tables() == TablePlace::kFile || head != kGemma4Embedding) {
    weights.embedding = loader.table(kGemma4Embedding, config.hidden);
  }
  if (config.ple_width > 0) {
    const int64_t all_layers = config.layer_count() * config.ple_width;
    weights.ple_embedding = loader.table("per_layer_token_embd.weight", all_layers);
    weights.ple_model_projection =
        loader.matrix("per_layer_model_proj.weight", all_layers, config.hidden);
    weights.ple_projection_norm = loader.vector("per_layer_proj_norm.weight", config.ple_width);
  }
  const int full_pairs = config.full_head_dim / 2;
  weights.full_rope_divisors = loader.optional_vector("rope_freqs.weight", full_pairs);
  if (weights.full_rope_divisors.empty()) {
    weights.full_rope_divisors = default_rope_divisors(full_pairs);
  }
  for (int64_t l = 0; l < config.layer_count(); ++l) {
    weights.layers.push_back(load_layer(loader, config, l));
  }
  weights.output_norm = loader.vector("output_norm.weight", config.hidden);
  weights.head = loader.matrix(head, config.vocabulary, config.hidden);
  weights.head_tensor = &loader.checkpoint().at(head);
  loader.finish();
  return weights;
}

}  // namespace octet
