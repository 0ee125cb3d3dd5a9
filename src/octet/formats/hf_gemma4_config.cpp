// config.json of Gemma 4, with or without a text_config inside.

#include "octet/formats/hf_gemma4_config.h"

#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/formats/canonical_metadata.h"
#include "octet/formats/hf_config_keys.h"
#include "octet/formats/message_text.h"
#include "octet/formats/model_metadata.h"

namespace octet {

namespace {

constexpr double kDefaultSlidingTheta = 1e4;
constexpr double kDefaultFullTheta = 1e6;
constexpr double kDefaultPartialRotary = 0.25;
constexpr int64_t kDefaultFullHeadDim = 512;
constexpr int64_t kDefaultPeriod = 6;

void refuse_what_is_not_there(const JsonValue& text) {
  refuse_if_set(
      text, "attention_k_eq_v", "octet does not share keys and values on full-attention layers"
  );
  refuse_if_set(text, "enable_moe_block", "octet has no mixture-of-experts layers");
  refuse_if_set(text, "attention_bias", "octet has no attention biases");
  const std::string* activation = text.find_string("hidden_activation");
  if (activation != nullptr && *activation != "gelu_pytorch_tanh") {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format(
            "'hidden_activation' is {}; only 'gelu_pytorch_tanh' is supported", shown(*activation)
        )
    );
  }
}

/// Where "layer_types" is absent, every sixth layer and the last are full.
std::vector<bool> sliding_or_default(const JsonValue& text, int64_t layers) {
  std::vector<bool> sliding = sliding_layers(text, layers);
  if (sliding.empty()) {
    for (int64_t layer = 0; layer < layers; ++layer) {
      sliding.push_back((layer + 1) % kDefaultPeriod != 0 && layer != layers - 1);
    }
  }
  return sliding;
}

/// The head dimension of layers of one kind: from "per_layer_config" where it says so, which must
/// be the same for all layers of the kind; else `absent`.
int64_t head_dim_of_kind(
    const JsonValue& text, const std::vector<bool>& sliding, bool kind, int64_t absent
) {
  const JsonValue* per_layer = text.find("per_layer_config");
  if (per_layer == nullptr) {
    return absent;
  }
  std::optional<int64_t> found;
  for (size_t layer = 0; layer < sliding.size(); ++layer) {
    if (sliding[layer] != kind) {
      continue;
    }
    const JsonValue* entry = per_layer->find(fmt::format("{}", layer));
    const int64_t size =
        entry != nullptr ? entry->find_integer("head_dim").value_or(absent) : absent;
    if (found.value_or(size) != size) {
      throw Error(
          ErrorKind::kUnsupported,
          fmt::format(
              "'per_layer_config' gives layer {} head_dim {}, other layers of its kind {}",
              layer,
              size,
              *found
          )
      );
    }
    found = size;
  }
  return found.value_or(absent);
}

/// Overrides of "per_layer_config" that octet follows; others would change the computation.
void check_per_layer_config(const JsonValue& text, int64_t layers) {
  const JsonObject* per_layer = text.find_object("per_layer_config");
  if (per_layer == nullptr) {
    return;
  }
  for (const auto& [index, overrides] : *per_layer) {
    int64_t layer = -1;
    const auto [end, error] = std::from_chars(index.data(), index.data() + index.size(), layer);
    if (error != std::errc() || end != index.data() + index.size() || layer < 0 ||
        layer >= layers || overrides.object() == nullptr) {
      throw Error(
          ErrorKind::kMalformed,
          fmt::format(
              "'per_layer_config' entry {} must be a layer from 0 to {} with an object",
              shown(index),
              layers - 1
          )
      );
    }
    for (const auto& member : *overrides.object()) {
      if (member.first != "head_dim" && member.first != "intermediate_size" &&
          member.first != "num_key_value_heads") {
        throw Error(
            ErrorKind::kUnsupported,
            fmt::format("'per_layer_config' overrides {} of layer {}", shown(member.first), layer)
        );
      }
    }
  }
}

/// One number a layer: `base`, overridden by `key` of "per_layer_config".
std::vector<int64_t> per_layer_numbers(
    const JsonValue& text, std::string_view key, std::vector<int64_t> base
) {
  if (const JsonValue* per_layer = text.find("per_layer_config")) {
    for (size_t layer = 0; layer < base.size(); ++layer) {
      if (const JsonValue* entry = per_layer->find(fmt::format("{}", layer))) {
        base[layer] = entry->find_integer(key).value_or(base[layer]);
      }
    }
  }
  return base;
}

void set_layers(Metadata& metadata, const JsonValue& text, int64_t layers) {
  // Checked before they are counted with: a file may say anything.
  const int64_t shared = within(
      "num_kv_shared_layers", text.find_integer("num_kv_shared_layers").value_or(0), 0, layers - 1
  );
  const int64_t ffn = within(
      "intermediate_size",
      required_integer(text, "intermediate_size"),
      1,
      std::numeric_limits<int32_t>::max()
  );
  const bool double_wide = text.find_boolean("use_double_wide_mlp").value_or(false);
  std::vector<int64_t> widths(static_cast<size_t>(layers), ffn);
  for (int64_t layer = layers - shared; double_wide && layer < layers; ++layer) {
    widths[static_cast<size_t>(layer)] = 2 * ffn;
  }
  const std::vector<int64_t> kv_heads(
      static_cast<size_t>(layers), required_integer(text, "num_key_value_heads")
  );
  set_u32_from(metadata, "gemma4.attention.shared_kv_layers", "num_kv_shared_layers", shared);
  set_u32_array(
      metadata, "gemma4.feed_forward_length", per_layer_numbers(text, "intermediate_size", widths)
  );
  set_u32_array(
      metadata,
      "gemma4.attention.head_count_kv",
      per_layer_numbers(text, "num_key_value_heads", kv_heads)
  );

  const std::vector<bool> sliding = sliding_or_default(text, layers);
  metadata.set("gemma4.attention.sliding_window_pattern", MetadataArray(sliding));
  const int64_t sliding_dim =
      head_dim_of_kind(text, sliding, true, required_integer(text, "head_dim"));
  const int64_t full_dim = head_dim_of_kind(
      text, sliding, false, text.find_integer("global_head_dim").value_or(kDefaultFullHeadDim)
  );
  for (const char* key :
       {"gemma4.attention.key_length",
        "gemma4.attention.value_length",
        "gemma4.rope.dimension_count"}) {
    set_u32_from(metadata, key, "global_head_dim", full_dim);
    set_u32_from(metadata, fmt::format("{}_swa", key), "head_dim", sliding_dim);
  }
}

}  // namespace

HfConfig read_gemma4_config(const JsonValue& config) {
  const JsonValue* nested = config.find("text_config");
  const JsonValue& text = nested != nullptr ? *nested : config;
  refuse_what_is_not_there(text);

  HfConfig result;
  Metadata& metadata = result.metadata;
  metadata.set("general.architecture", std::string("gemma4"));
  set_u32_from(
      metadata,
      "gemma4.block_count",
      "num_hidden_layers",
      required_integer(text, "num_hidden_layers")
  );
  const int64_t layers = layer_count(metadata, "gemma4");
  check_per_layer_config(text, layers);
  set_u32_from(metadata, "gemma4.vocab_size", "vocab_size", required_integer(text, "vocab_size"));
  set_u32_from(
      metadata, "gemma4.embedding_length", "hidden_size", required_integer(text, "hidden_size")
  );
  set_u32_from(
      metadata,
      "gemma4.context_length",
      "max_position_embeddings",
      required_integer(text, "max_position_embeddings")
  );
  set_u32_from(
      metadata,
      "gemma4.attention.head_count",
      "num_attention_heads",
      required_integer(text, "num_attention_heads")
  );
  set_u32_from(
      metadata,
      "gemma4.attention.sliding_window",
      "sliding_window",
      required_integer(text, "sliding_window")
  );
  set_u32_from(
      metadata,
      "gemma4.embedding_length_per_layer_input",
      "hidden_size_per_layer_input",
      text.find_integer("hidden_size_per_layer_input").value_or(0)
  );
  set_layers(metadata, text, layers);

  const auto epsilon = static_cast<float>(text.find_number("rms_norm_eps").value_or(1e-6));
  metadata.set("gemma4.attention.layer_norm_rms_epsilon", epsilon);
  if (const std::optional<double> cap = text.find_number("final_logit_softcapping")) {
    metadata.set("gemma4.final_logit_softcapping", static_cast<float>(*cap));
  }
  const JsonValue absent;
  const JsonValue* rope = text.find("rope_parameters");
  const JsonValue* full = rope != nullptr ? rope->find("full_attention") : nullptr;
  const JsonValue* sliding = rope != nullptr ? rope->find("sliding_attention") : nullptr;
  const RopeParameters full_rope = read_rope(full != nullptr ? *full : absent, kDefaultFullTheta);
  const RopeParameters sliding_rope =
      read_rope(sliding != nullptr ? *sliding : absent, kDefaultSlidingTheta);
  if (sliding_rope.partial_rotary_factor != 1.0) {
    throw Error(ErrorKind::kUnsupported, "'partial_rotary_factor' of sliding layers must be 1");
  }
  metadata.set("gemma4.rope.freq_base", static_cast<float>(full_rope.theta));
  metadata.set("gemma4.rope.freq_base_swa", static_cast<float>(sliding_rope.theta));
  result.partial_rotary_factor =
      full != nullptr ? full_rope.partial_rotary_factor : kDefaultPartialRotary;

  const std::optional<bool> tied = text.find_boolean("tie_word_embeddings");
  result.tied_head = tied.value_or(config.find_boolean("tie_word_embeddings").value_or(true));
  return result;
}

}  // namespace octet
