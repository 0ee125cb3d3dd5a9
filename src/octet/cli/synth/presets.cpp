#include "octet/cli/synth/presets.h"

#include <cstdint>
#include <string>
#include <vector>

namespace octet::cli {
namespace {

struct TargetFigures {
  uint32_t layers;
  uint32_t hidden;
  uint32_t feed_forward;
  uint32_t heads;
  uint32_t kv_heads;
  uint32_t full_head_dim;
  uint32_t sliding_head_dim;
  uint32_t window;
  uint32_t full_every;  // layer i is full when i % full_every == full_every - 1
  uint32_t shared_kv_layers;
  uint32_t per_layer_width;
  uint32_t context;
  uint32_t vocabulary;
};

struct DrafterFigures {
  uint32_t layers;
  uint32_t feed_forward;
  uint32_t heads;
  uint32_t kv_heads;
  uint32_t head_dim;
  uint32_t window;
  std::vector<uint32_t> taps;
};

constexpr uint32_t kBlock = 8;
constexpr uint32_t kMaskToken = 4;

TargetFigures target_figures(SynthPreset preset) {
  if (preset == SynthPreset::kBoltE4b) {
    return {
        .layers = 42,
        .hidden = 2560,
        .feed_forward = 10240,
        .heads = 8,
        .kv_heads = 2,
        .full_head_dim = 512,
        .sliding_head_dim = 256,
        .window = 512,
        .full_every = 6,
        .shared_kv_layers = 18,
        .per_layer_width = 256,
        .context = 131072,
        .vocabulary = 262144,
    };
  }
  return {
      .layers = 6,
      .hidden = 256,
      .feed_forward = 512,
      .heads = 4,
      .kv_heads = 2,
      .full_head_dim = 128,
      .sliding_head_dim = 64,
      .window = 32,
      .full_every = 3,
      .shared_kv_layers = 3,
      .per_layer_width = 32,
      .context = 4096,
      .vocabulary = 1024,
  };
}

DrafterFigures drafter_figures(SynthPreset preset) {
  if (preset == SynthPreset::kBoltE4b) {
    return {
        .layers = 5,
        .feed_forward = 5120,
        .heads = 32,
        .kv_heads = 8,
        .head_dim = 128,
        .window = 1024,
        .taps = {5, 11, 17, 23, 35},
    };
  }
  return {
      .layers = 2,
      .feed_forward = 512,
      .heads = 4,
      .kv_heads = 2,
      .head_dim = 64,
      .window = 32,
      .taps = {1, 2, 3, 4},
  };
}

Metadata general_metadata(std::string architecture, std::string name) {
  Metadata metadata;
  metadata.set("general.architecture", std::move(architecture));
  metadata.set("general.type", std::string("model"));
  metadata.set("general.name", std::move(name));
  metadata.set("general.quantization_version", uint32_t{2});
  return metadata;
}

}  // namespace

std::string_view preset_name(SynthPreset preset) {
  return preset == SynthPreset::kBoltE4b ? "bolt-e4b" : "tiny";
}

Metadata target_metadata(SynthPreset preset) {
  const TargetFigures figures = target_figures(preset);
  Metadata metadata =
      general_metadata("gemma4", std::string(preset_name(preset)) + " with random weights");
  metadata.set("gemma4.context_length", figures.context);
  metadata.set("gemma4.block_count", figures.layers);
  metadata.set("gemma4.vocab_size", figures.vocabulary);
  metadata.set("gemma4.embedding_length", figures.hidden);
  metadata.set(
      "gemma4.feed_forward_length",
      MetadataArray(std::vector<uint32_t>(figures.layers, figures.feed_forward))
  );
  metadata.set("gemma4.attention.head_count", figures.heads);
  metadata.set(
      "gemma4.attention.head_count_kv",
      MetadataArray(std::vector<uint32_t>(figures.layers, figures.kv_heads))
  );
  metadata.set("gemma4.attention.key_length", figures.full_head_dim);
  metadata.set("gemma4.attention.value_length", figures.full_head_dim);
  metadata.set("gemma4.attention.key_length_swa", figures.sliding_head_dim);
  metadata.set("gemma4.attention.value_length_swa", figures.sliding_head_dim);
  metadata.set("gemma4.attention.layer_norm_rms_epsilon", 1e-6F);
  metadata.set("gemma4.attention.sliding_window", figures.window);
  std::vector<bool> sliding(figures.layers);
  for (uint32_t layer = 0; layer < figures.layers; ++layer) {
    sliding[layer] = layer % figures.full_every != figures.full_every - 1;
  }
  metadata.set("gemma4.attention.sliding_window_pattern", MetadataArray(std::move(sliding)));
  metadata.set("gemma4.attention.shared_kv_layers", figures.shared_kv_layers);
  metadata.set("gemma4.embedding_length_per_layer_input", figures.per_layer_width);
  metadata.set("gemma4.rope.dimension_count", figures.full_head_dim);
  metadata.set("gemma4.rope.dimension_count_swa", figures.sliding_head_dim);
  metadata.set("gemma4.rope.freq_base", 1e6F);
  metadata.set("gemma4.rope.freq_base_swa", 1e4F);
  metadata.set("gemma4.final_logit_softcapping", 30.0F);
  return metadata;
}

Metadata drafter_metadata(SynthPreset preset) {
  const TargetFigures target = target_figures(preset);
  const DrafterFigures figures = drafter_figures(preset);
  Metadata metadata =
      general_metadata("dflash", std::string(preset_name(preset)) + " drafter with random weights");
  metadata.set("dflash.context_length", target.context);
  metadata.set("dflash.block_count", figures.layers);
  metadata.set("dflash.vocab_size", target.vocabulary);
  metadata.set("dflash.embedding_length", target.hidden);
  metadata.set("dflash.feed_forward_length", figures.feed_forward);
  metadata.set("dflash.attention.head_count", figures.heads);
  metadata.set("dflash.attention.head_count_kv", figures.kv_heads);
  metadata.set("dflash.attention.key_length", figures.head_dim);
  metadata.set("dflash.attention.value_length", figures.head_dim);
  metadata.set("dflash.attention.layer_norm_rms_epsilon", 1e-6F);
  metadata.set("dflash.attention.sliding_window", figures.window);
  metadata.set(
      "dflash.attention.sliding_window_pattern",
      MetadataArray(std::vector<bool>(figures.layers, true))
  );
  metadata.set(
      "dflash.attention.causal_pattern", MetadataArray(std::vector<bool>(figures.layers, false))
  );
  metadata.set("dflash.rope.freq_base", 1e6F);
  metadata.set("dflash.block_size", kBlock);
  metadata.set("dflash.mask_token_id", kMaskToken);
  metadata.set("dflash.target_layer_ids", MetadataArray(figures.taps));
  return metadata;
}

}  // namespace octet::cli
