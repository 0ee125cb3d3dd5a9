// config.json of a DFlash drafter, with the windows of its layers (DraftAttention).

#include "octet/formats/hf_dflash_config.h"

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

constexpr int64_t kDefaultMaxWindowLayers = 28;  // of the qwen3 configuration that drafters borrow

/// Keys that exporters write inside "dflash_config" or flat: the nested one wins.
class DraftKeys {
 public:
  explicit DraftKeys(const JsonValue& config)
      : flat_(config), nested_(config.find("dflash_config")) {}

  const JsonValue& holder(std::string_view key) const {
    return nested_ != nullptr && nested_->find(key) != nullptr ? *nested_ : flat_;
  }
  const JsonValue* nested() const { return nested_; }

 private:
  const JsonValue& flat_;
  const JsonValue* nested_;
};

void refuse_other_drafters(const JsonValue& config, const DraftKeys& keys) {
  for (const char* key :
       {"projector_type", "conv_kernel_size", "selector_rank", "attention_sink"}) {
    refuse_if_set(keys.holder(key), key, "this variant of the drafter is not supported");
  }
  refuse_if_set(config, "attention_bias", "octet has no attention biases");
  const std::string* activation = config.find_string("hidden_act");
  if (activation != nullptr && *activation != "silu") {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format("'hidden_act' is {}; only 'silu' is supported", shown(*activation))
    );
  }
}

std::vector<int64_t> read_taps(const DraftKeys& keys) {
  const JsonArray* ids = keys.holder("target_layer_ids").find_array("target_layer_ids");
  if (ids == nullptr || ids->empty()) {
    throw Error(
        ErrorKind::kNotFound,
        "'target_layer_ids' is missing, flat and in 'dflash_config'; the drafter must say which "
        "layers it taps"
    );
  }
  std::vector<int64_t> taps;
  for (const JsonValue& id : *ids) {
    if (!id.integer()) {
      throw Error(
          ErrorKind::kMalformed,
          fmt::format("'target_layer_ids' must hold integers, found {}", id.type_name())
      );
    }
    taps.push_back(*id.integer());
  }
  return taps;
}

void check_taps(const std::vector<int64_t>& taps, std::optional<int64_t> target_layers) {
  for (const int64_t tap : taps) {
    if (tap < 0 || (target_layers && tap >= *target_layers)) {
      throw Error(
          ErrorKind::kMalformed,
          fmt::format(
              "'target_layer_ids' holds {}; expected layers from 0 to {}",
              tap,
              target_layers
                  ? fmt::format(
                        "{} ('num_target_layers' is {})", *target_layers - 1, *target_layers
                    )
                  : "the target's last"
          )
      );
    }
  }
}

/// "layer_types", or what the qwen3 configuration derives when it is absent.
std::vector<bool> declared_sliding(const JsonValue& config, int64_t layers) {
  std::vector<bool> sliding = sliding_layers(config, layers);
  if (sliding.empty()) {
    const bool used = config.find_boolean("use_sliding_window").value_or(false) &&
                      config.find("sliding_window") != nullptr;
    const int64_t first =
        config.find_integer("max_window_layers").value_or(kDefaultMaxWindowLayers);
    for (int64_t layer = 0; layer < layers; ++layer) {
      sliding.push_back(used && layer >= first);
    }
  }
  return sliding;
}

DraftAttention read_attention(const JsonValue& config, const DraftKeys& keys, int64_t layers) {
  const std::vector<bool> sliding = declared_sliding(config, layers);
  DraftAttention attention;
  attention.window = config.find_integer("sliding_window").value_or(0);
  attention.windowed = sliding;
  attention.causal = sliding;
  const JsonValue* nested = keys.nested();
  if (nested != nullptr && nested->find_boolean("use_swa").value_or(false)) {
    attention.window = nested->find_integer("swa_window_size").value_or(attention.window);
    attention.windowed.assign(sliding.size(), true);
  }
  std::optional<bool> causal = config.find_boolean("is_causal");
  if (!causal && nested != nullptr) {
    causal = nested->find_boolean("causal");
  }
  if (causal) {
    attention.causal.assign(sliding.size(), *causal);
  }
  return attention;
}

double read_theta(const JsonValue& config) {
  const JsonValue* scaling = config.find("rope_scaling");
  if (scaling != nullptr) {
    read_rope(*scaling, 0.0);
  }
  const JsonValue* parameters = config.find("rope_parameters");
  const RopeParameters rope = read_rope(parameters != nullptr ? *parameters : config, 0.0);
  const double theta =
      rope.theta > 0.0 ? rope.theta : config.find_number("rope_theta").value_or(0.0);
  if (!(theta > 0.0)) {
    throw Error(
        ErrorKind::kNotFound,
        "'rope_theta' is missing, flat and in 'rope_parameters'; the drafter needs it"
    );
  }
  if (rope.partial_rotary_factor != 1.0) {
    throw Error(ErrorKind::kUnsupported, "'partial_rotary_factor' of a drafter must be 1");
  }
  return theta;
}

}  // namespace

HfConfig read_dflash_config(const JsonValue& config) {
  const DraftKeys keys(config);
  refuse_other_drafters(config, keys);

  HfConfig result;
  Metadata& metadata = result.metadata;
  metadata.set("general.architecture", std::string("dflash"));
  const std::pair<const char*, const char*> required[] = {
      {"dflash.block_count", "num_hidden_layers"},
      {"dflash.embedding_length", "hidden_size"},
      {"dflash.feed_forward_length", "intermediate_size"},
      {"dflash.attention.head_count", "num_attention_heads"},
      {"dflash.attention.head_count_kv", "num_key_value_heads"},
      {"dflash.attention.key_length", "head_dim"},
      {"dflash.attention.value_length", "head_dim"},
      {"dflash.vocab_size", "vocab_size"},
      {"dflash.context_length", "max_position_embeddings"},
  };
  for (const auto& [to, key] : required) {
    set_u32_from(metadata, to, key, required_integer(config, key));
  }
  for (const char* key : {"block_size", "mask_token_id"}) {
    set_u32_from(
        metadata, fmt::format("dflash.{}", key), key, required_integer(keys.holder(key), key)
    );
  }
  metadata.set(
      "dflash.attention.layer_norm_rms_epsilon",
      static_cast<float>(config.find_number("rms_norm_eps").value_or(1e-6))
  );
  metadata.set("dflash.rope.freq_base", static_cast<float>(read_theta(config)));
  if (const std::optional<double> scale =
          keys.holder("embedding_scale").find_number("embedding_scale")) {
    metadata.set("dflash.embedding_scale", static_cast<float>(*scale));
  }
  constexpr const char* kCap = "final_logit_softcapping";
  if (const std::optional<double> cap = keys.holder(kCap).find_number(kCap)) {
    metadata.set(fmt::format("dflash.{}", kCap), static_cast<float>(*cap));
  }
  const std::vector<int64_t> taps = read_taps(keys);
  const std::optional<int64_t> target_layers = config.find_integer("num_target_layers");
  check_taps(taps, target_layers);
  if (target_layers) {
    set_u32_from(metadata, "dflash.target_block_count", "num_target_layers", *target_layers);
  }
  set_u32_array(metadata, "dflash.target_layer_ids", taps);
  set_draft_attention(metadata, read_attention(config, keys, layer_count(metadata, "dflash")));
  return result;
}

}  // namespace octet
