#include "octet/models/gemma4/config.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/models/key_reader.h"

namespace octet {
namespace {

/// One bool a layer, or a period n: layer i is full when i % n == n - 1.
std::vector<bool> read_sliding_pattern(const KeyReader& keys, int64_t layers) {
  constexpr std::string_view kKey = "attention.sliding_window_pattern";
  const MetadataValue* value = keys.metadata().find(keys.full(kKey));
  if (value != nullptr && std::holds_alternative<MetadataArray>(*value)) {
    return keys.flags(kKey, layers, true);
  }
  const int64_t period = keys.integer(kKey, 1, kMaxLayers);
  std::vector<bool> sliding;
  for (int64_t l = 0; l < layers; ++l) {
    sliding.push_back(l % period != period - 1);
  }
  return sliding;
}

/// Layers at and above `first_shared` read from the last owner below it that has their kind.
void assign_donors(const KeyReader& keys, int64_t first_shared, Gemma4Config& config) {
  for (int64_t l = 0; l < config.layer_count(); ++l) {
    Gemma4LayerConfig& layer = config.layers[static_cast<size_t>(l)];
    layer.owns_kv = l < first_shared;
    layer.donor = layer.owns_kv ? l : first_shared - 1;
    while (layer.donor >= 0 && config.layer(layer.donor).sliding != layer.sliding) {
      --layer.donor;
    }
    if (layer.donor < 0) {
      keys.fail(
          ErrorKind::kMalformed,
          "attention.shared_kv_layers",
          fmt::format(
              "leaves layer {} without a {} layer to share", l, layer.sliding ? "sliding" : "full"
          )
      );
    }
    const int donor_kv_heads = config.layer(layer.donor).kv_heads;
    if (donor_kv_heads != layer.kv_heads || layer.heads % layer.kv_heads != 0) {
      keys.fail(
          ErrorKind::kMalformed,
          "attention.head_count_kv",
          fmt::format(
              "is {} in layer {}, which has {} query heads and a donor with {} K/V heads",
              layer.kv_heads,
              l,
              layer.heads,
              donor_kv_heads
          )
      );
    }
  }
}

void read_layers(const KeyReader& keys, Gemma4Config& config) {
  const int64_t count = keys.integer("block_count", 1, kMaxLayers);
  const std::vector<bool> sliding = read_sliding_pattern(keys, count);
  const std::vector<int64_t> heads = keys.per_layer("attention.head_count", count, kMaxHeads);
  const std::vector<int64_t> kv_heads = keys.per_layer("attention.head_count_kv", count, kMaxHeads);
  const std::vector<int64_t> widths = keys.per_layer("feed_forward_length", count, kMaxWidth);
  for (size_t l = 0; l < static_cast<size_t>(count); ++l) {
    Gemma4LayerConfig layer;
    layer.sliding = sliding[l];
    layer.heads = static_cast<int>(heads[l]);
    layer.kv_heads = static_cast<int>(kv_heads[l]);
    layer.head_dim = layer.sliding ? config.sliding_head_dim : config.full_head_dim;
    layer.feed_forward = widths[l];
    config.layers.push_back(layer);
  }
  const int64_t shared = keys.integer_or("attention.shared_kv_layers", 0, 0, count - 1);
  assign_donors(keys, count - shared, config);
}

void read_keys(const KeyReader& keys, Gemma4Config& config) {
  if (keys.integer_or("expert_count", 0, 0, kMaxWidth) > 0) {
    keys.fail(ErrorKind::kUnsupported, "expert_count", "is set: expert layers are not supported");
  }
  config.hidden = keys.integer("embedding_length", 1, kMaxWidth);
  config.context_length = keys.integer("context_length", 1, kMaxPositions);
  config.window = keys.integer("attention.sliding_window", 1, kMaxPositions);
  config.ple_width = keys.integer_or("embedding_length_per_layer_input", 0, 0, kMaxWidth);
  config.norm_epsilon = static_cast<float>(keys.positive("attention.layer_norm_rms_epsilon"));
  config.softcap =
      static_cast<float>(keys.zero_or_positive("final_logit_softcapping").value_or(0.0));
  config.full_head_dim = keys.head_dim("attention.key_length", "attention.value_length");
  config.sliding_head_dim = keys.head_dim("attention.key_length_swa", "attention.value_length_swa");
  keys.expect_rope_width("rope.dimension_count", config.full_head_dim);
  keys.expect_rope_width("rope.dimension_count_swa", config.sliding_head_dim);
  config.full_rope_base = keys.positive_or("rope.freq_base", 1e6);
  config.sliding_rope_base = keys.positive_or("rope.freq_base_swa", 1e4);
  read_layers(keys, config);
}

}  // namespace

int64_t Gemma4Config::last_kv_layer() const {
  const auto owner = std::find_if(
      layers.rbegin(), layers.rend(), [](const Gemma4LayerConfig& layer) { return layer.owns_kv; }
  );
  return std::distance(owner, layers.rend()) - 1;
}

Gemma4Config read_gemma4_config(const Checkpoint& checkpoint) {
  Gemma4Config config;
  try {
    read_keys(KeyReader(checkpoint.metadata, "gemma4"), config);
  } catch (Error& error) {
    error.add_context(checkpoint.path);
    throw;
  }
  config.vocabulary = checkpoint.at("token_embd.weight").rows();
  return config;
}

}  // namespace octet
