#include "octet/formats/canonical_metadata.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/formats/model_metadata.h"

namespace octet {

namespace {

// Luce writes gemma4-dflash-draft, ik_llama.cpp dflash-draft; llama.cpp dflash.
constexpr std::string_view kLuceArchitecture = "gemma4-dflash-draft";
constexpr std::string_view kDialects[] = {"dflash", "dflash-draft", kLuceArchitecture};

// The drafter of Nemotron 3.5 Bolt E4B. Its converter drops the window of a config that gives it as
// dflash_config.use_swa, so a file of exactly this shape without window keys is read with the
// window it was trained with: attention beyond it loses acceptance at long
// context.
const std::vector<int64_t> kBoltTaps = {5, 11, 17, 23, 35};
constexpr int64_t kBoltLayers = 5;
constexpr int64_t kBoltHidden = 2560;
constexpr int64_t kBoltWindow = 1024;

void set_u32(Metadata& metadata, const std::string& key, int64_t value) {
  if (value < 0 || value > std::numeric_limits<uint32_t>::max()) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format("metadata key '{}': {} does not fit an unsigned 32-bit number", key, value)
    );
  }
  metadata.set(key, static_cast<uint32_t>(value));
}

void set_booleans(Metadata& metadata, const std::string& key, const std::vector<bool>& values) {
  metadata.set(key, MetadataArray(values));
}

[[noreturn]] void missing(const char* what, const char* keys) {
  throw Error(
      ErrorKind::kNotFound,
      fmt::format("the drafter does not say {}; expected the metadata key {}", what, keys)
  );
}

/// One flag a layer from an array, or from a period n: layer i is full attention iff i % n == n
/// - 1.
std::vector<bool> window_pattern(const Metadata& metadata, const std::string& key, int64_t layers) {
  const MetadataValue* value = metadata.find(key);
  std::vector<bool> pattern;
  if (value != nullptr && std::holds_alternative<MetadataArray>(*value)) {
    for (const int64_t flag : metadata.integers_per_layer(key, layers)) {
      pattern.push_back(flag != 0);
    }
    return pattern;
  }
  const int64_t period = metadata.integer(key);
  if (period < 1) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format("metadata key '{}' is {}; expected a period of at least 1", key, period)
    );
  }
  for (int64_t layer = 0; layer < layers; ++layer) {
    pattern.push_back(layer % period != period - 1);
  }
  return pattern;
}

/// Copies "<architecture>.x" and "<architecture>.dflash.x" to "dflash.x"; what is there already
/// wins.
void rename_keys(Metadata& metadata, const std::string& architecture) {
  const std::string prefix = architecture + ".";
  constexpr std::string_view kInner = "dflash.";
  std::vector<std::pair<std::string, MetadataValue>> renamed;
  for (const auto& [key, value] : metadata.entries()) {
    if (!key.starts_with(prefix)) {
      continue;
    }
    std::string_view rest = std::string_view(key).substr(prefix.size());
    if (rest.starts_with(kInner)) {
      rest.remove_prefix(kInner.size());
    }
    renamed.emplace_back(fmt::format("dflash.{}", rest), value);
  }
  for (auto& [key, value] : renamed) {
    if (!metadata.contains(key)) {
      metadata.set(std::move(key), std::move(value));
    }
  }
}

/// Zero-based layer outputs. llama.cpp writes "target_layers", the layers whose *input* is tapped:
/// one more.
std::vector<int64_t> tap_layers(const Metadata& metadata) {
  if (std::optional<std::vector<int64_t>> ids = metadata.find_integers("dflash.target_layer_ids")) {
    return *std::move(ids);
  }
  std::optional<std::vector<int64_t>> inputs = metadata.find_integers("dflash.target_layers");
  if (!inputs) {
    missing(
        "which layers of the target it taps", "dflash.target_layers or dflash.target_layer_ids"
    );
  }
  for (int64_t& layer : *inputs) {
    if (layer < 1) {
      throw Error(
          ErrorKind::kMalformed,
          fmt::format("metadata key 'dflash.target_layers' holds {}; entries count from 1", layer)
      );
    }
    --layer;
  }
  return *std::move(inputs);
}

bool is_bolt_drafter(const Metadata& metadata, const std::vector<int64_t>& taps, int64_t layers) {
  return taps == kBoltTaps && layers == kBoltLayers &&
         metadata.find_integer("dflash.embedding_length") == kBoltHidden;
}

DraftAttention draft_attention(
    const Metadata& metadata, const std::string& architecture, const std::vector<int64_t>& taps
) {
  const int64_t layers = layer_count(metadata, "dflash");
  const std::string pattern_key = "dflash.attention.sliding_window_pattern";
  DraftAttention attention;
  attention.window = metadata.find_integer("dflash.attention.sliding_window").value_or(0);
  const bool told =
      metadata.contains("dflash.attention.sliding_window") || metadata.contains(pattern_key);
  if (!told && is_bolt_drafter(metadata, taps, layers)) {
    attention.window = kBoltWindow;
  }
  attention.windowed.assign(static_cast<size_t>(layers), attention.window > 0);
  if (attention.window > 0 && metadata.contains(pattern_key)) {
    attention.windowed = window_pattern(metadata, pattern_key, layers);
  }
  attention.causal.assign(
      static_cast<size_t>(layers), metadata.find_boolean("dflash.attention.causal").value_or(false)
  );
  if (architecture == kLuceArchitecture) {
    attention.causal = attention.windowed;  // its windowed layers are causal inside the block
  }
  if (metadata.contains("dflash.attention.causal_pattern")) {
    attention.causal = window_pattern(metadata, "dflash.attention.causal_pattern", layers);
  }
  return attention;
}

}  // namespace

bool is_dflash_dialect(std::string_view architecture) {
  return std::find(std::begin(kDialects), std::end(kDialects), architecture) != std::end(kDialects);
}

void set_u32_array(Metadata& metadata, const std::string& key, const std::vector<int64_t>& values) {
  std::vector<uint32_t> narrow;
  for (const int64_t value : values) {
    if (value < 0 || value > std::numeric_limits<uint32_t>::max()) {
      throw Error(
          ErrorKind::kMalformed,
          fmt::format("metadata key '{}' holds {}; expected unsigned 32-bit numbers", key, value)
      );
    }
    narrow.push_back(static_cast<uint32_t>(value));
  }
  metadata.set(key, MetadataArray(std::move(narrow)));
}

void set_draft_attention(Metadata& metadata, const DraftAttention& attention) {
  const bool any = std::find(attention.windowed.begin(), attention.windowed.end(), true) !=
                   attention.windowed.end();
  if (any && attention.window < 1) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format("a drafter layer is windowed, but the window is {}", attention.window)
    );
  }
  set_u32(metadata, "dflash.attention.sliding_window", any ? attention.window : 0);
  set_booleans(metadata, "dflash.attention.sliding_window_pattern", attention.windowed);
  set_booleans(metadata, "dflash.attention.causal_pattern", attention.causal);
}

void canonicalise_gemma4(Metadata& metadata, int64_t embedding_rows) {
  const int64_t layers = layer_count(metadata, "gemma4");
  for (const char* key : {"gemma4.feed_forward_length", "gemma4.attention.head_count_kv"}) {
    set_u32_array(metadata, key, metadata.integers_per_layer(key, layers));
  }
  const std::string pattern_key = "gemma4.attention.sliding_window_pattern";
  set_booleans(metadata, pattern_key, window_pattern(metadata, pattern_key, layers));
  if (!metadata.contains("gemma4.vocab_size")) {
    set_u32(metadata, "gemma4.vocab_size", embedding_rows);
  }
}

void canonicalise_dflash(Metadata& metadata) {
  const std::string architecture = metadata.string("general.architecture");
  rename_keys(metadata, architecture);
  metadata.set("general.architecture", std::string("dflash"));

  const std::vector<int64_t> taps = tap_layers(metadata);
  set_draft_attention(metadata, draft_attention(metadata, architecture, taps));
  set_u32_array(metadata, "dflash.target_layer_ids", taps);

  if (!metadata.contains("dflash.block_size")) {
    missing("how many tokens a block has", "dflash.block_size");
  }
  if (!metadata.contains("dflash.mask_token_id")) {
    const std::optional<int64_t> mask = metadata.find_integer("tokenizer.ggml.mask_token_id");
    if (!mask) {
      missing("its mask token", "tokenizer.ggml.mask_token_id or dflash.mask_token_id");
    }
    set_u32(metadata, "dflash.mask_token_id", *mask);
  }
  if (!metadata.contains("dflash.vocab_size")) {
    if (const std::vector<std::string_view>* tokens =
            metadata.find_strings("tokenizer.ggml.tokens")) {
      set_u32(metadata, "dflash.vocab_size", static_cast<int64_t>(tokens->size()));
    }
  }
  if (metadata.find_number("dflash.embedding_scale") == 0.0) {
    metadata.set("dflash.embedding_scale", 1.0F);  // how llama.cpp writes "no scale"
  }
}

}  // namespace octet
