#include "octet/formats/hf_config_writer.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/json_writer.h"
#include "octet/formats/model_metadata.h"

namespace octet {

namespace {

constexpr int64_t kNvfp4Group = 16;

void write_integers(JsonWriter& json, std::string_view name, const std::vector<int64_t>& values) {
  json.key(name).begin_array();
  for (const int64_t value : values) {
    json.value(value);
  }
  json.end_array();
}

void write_strings(
    JsonWriter& json, std::string_view name, const std::vector<std::string>& values
) {
  json.key(name).begin_array();
  for (const std::string& value : values) {
    json.value(value);
  }
  json.end_array();
}

void write_layer_types(JsonWriter& json, const std::vector<int64_t>& sliding) {
  json.key("layer_types").begin_array();
  for (const int64_t is_sliding : sliding) {
    json.value(is_sliding != 0 ? "sliding_attention" : "full_attention");
  }
  json.end_array();
}

void write_full_rope(JsonWriter& json, const Metadata& metadata, double partial_rotary_factor) {
  json.key("full_attention").begin_object();
  json.member("rope_theta", metadata.number("gemma4.rope.freq_base"));
  json.member("rope_type", "proportional");
  json.member("partial_rotary_factor", partial_rotary_factor).end_object();
}

void write_sliding_rope(JsonWriter& json, const Metadata& metadata) {
  json.key("sliding_attention").begin_object();
  json.member("rope_theta", metadata.number("gemma4.rope.freq_base_swa"));
  json.member("rope_type", "default").end_object();
}

/// The feed-forward widths of layers without keys and values of their own are double those of the
/// others, which are alike.
bool is_double_wide(const Gemma4Dimensions& d) {
  if (d.shared_layers == 0 || d.shared_layers >= d.layers) {
    return false;
  }
  for (int64_t layer = 0; layer < d.layers; ++layer) {
    const int64_t factor = d.owns_kv(layer) ? 1 : 2;
    if (d.ffn[static_cast<size_t>(layer)] != factor * d.ffn.front()) {
      return false;
    }
  }
  return true;
}

void write_widths(JsonWriter& json, const Gemma4Dimensions& d) {
  json.member("intermediate_size", d.ffn.front());
  json.member("num_key_value_heads", d.kv_heads.front());
  const bool double_wide = is_double_wide(d);
  json.member("use_double_wide_mlp", double_wide);
  std::map<int64_t, std::vector<std::pair<const char*, int64_t>>> overrides;
  for (int64_t layer = 0; layer < d.layers; ++layer) {
    const auto index = static_cast<size_t>(layer);
    if (!double_wide && d.ffn[index] != d.ffn.front()) {
      overrides[layer].emplace_back("intermediate_size", d.ffn[index]);
    }
    if (d.kv_heads[index] != d.kv_heads.front()) {
      overrides[layer].emplace_back("num_key_value_heads", d.kv_heads[index]);
    }
  }
  if (overrides.empty()) {
    return;
  }
  json.key("per_layer_config").begin_object();
  for (const auto& [layer, members] : overrides) {
    json.key(fmt::format("{}", layer)).begin_object();
    for (const auto& [name, value] : members) {
      json.member(name, value);
    }
    json.end_object();
  }
  json.end_object();
}

void write_token_id(
    JsonWriter& json, const Metadata& metadata, std::string_view name, std::string_view key
) {
  if (const std::optional<int64_t> id = metadata.find_integer(key)) {
    json.member(name, *id);
  }
}

void write_target(JsonWriter& json, const Metadata& m, const HfTensorFacts& facts) {
  const Gemma4Dimensions d = gemma4_dimensions(m);
  json.key("architectures").begin_array().value("Gemma4ForCausalLM").end_array();
  json.member("model_type", "gemma4_text");
  json.member("vocab_size", d.vocabulary);
  json.member(
      "vocab_size_per_layer_input",
      facts.per_layer_vocabulary > 0 ? facts.per_layer_vocabulary : d.vocabulary
  );
  json.member("hidden_size", d.hidden).member("num_hidden_layers", d.layers);
  write_widths(json, d);
  json.member("num_attention_heads", d.heads);
  json.member("head_dim", d.head_dim_sliding).member("global_head_dim", d.head_dim_full);
  json.member("sliding_window", m.integer("gemma4.attention.sliding_window"));
  json.member("num_kv_shared_layers", d.shared_layers);
  json.member("hidden_size_per_layer_input", d.per_layer_input);
  json.member("rms_norm_eps", m.number("gemma4.attention.layer_norm_rms_epsilon"));
  if (const std::optional<double> cap = m.find_number("gemma4.final_logit_softcapping")) {
    json.member("final_logit_softcapping", *cap);
  }
  json.member("max_position_embeddings", m.integer("gemma4.context_length"));
  json.member("hidden_activation", "gelu_pytorch_tanh").member("attention_k_eq_v", false);
  json.member("attention_bias", false).member("enable_moe_block", false);
  json.member("tie_word_embeddings", !facts.own_head);
  write_layer_types(json, *m.find_integers("gemma4.attention.sliding_window_pattern"));
  json.key("rope_parameters").begin_object();
  write_sliding_rope(json, m);
  write_full_rope(json, m, facts.partial_rotary_factor);
  json.end_object();
  write_token_id(json, m, "bos_token_id", "tokenizer.ggml.bos_token_id");
  write_token_id(json, m, "eos_token_id", "tokenizer.ggml.eos_token_id");
  write_token_id(json, m, "pad_token_id", "tokenizer.ggml.padding_token_id");
}

/// Which keys say how the layers of a drafter see keys; the reader is hf_dflash_config.cpp.
struct DraftAttentionKeys {
  std::vector<int64_t> layer_types;  // 1: sliding_attention
  bool use_swa = false;
  std::optional<bool> causal;  // nullopt: sliding layers are causal inside the block
};

DraftAttentionKeys attention_keys(const Metadata& m) {
  const std::vector<int64_t> windowed =
      m.find_integers("dflash.attention.sliding_window_pattern").value();
  const std::vector<int64_t> causal = m.find_integers("dflash.attention.causal_pattern").value();
  const auto uniform = [](const std::vector<int64_t>& flags) {
    return std::all_of(flags.begin(), flags.end(), [&](int64_t f) { return f == flags.front(); });
  };
  DraftAttentionKeys keys;
  keys.layer_types = windowed;
  keys.use_swa = uniform(windowed) && windowed.front() != 0;
  if (uniform(causal)) {
    keys.causal = causal.front() != 0;
  } else if (keys.use_swa) {
    keys.layer_types = causal;
  } else if (causal != windowed) {
    throw Error(
        ErrorKind::kUnsupported,
        "the drafter's layers mix windows and causality in a way that config.json has no keys for; "
        "keep this drafter as GGUF"
    );
  }
  return keys;
}

void write_drafter(JsonWriter& json, const Metadata& m, const HfTensorFacts& facts) {
  const DflashDimensions d = dflash_dimensions(m);
  const DraftAttentionKeys attention = attention_keys(m);
  const int64_t window = m.find_integer("dflash.attention.sliding_window").value_or(0);
  json.key("architectures").begin_array().value("DFlashDraftModel").end_array();
  json.member("model_type", "qwen3").member("block_size", m.integer("dflash.block_size"));
  json.key("dflash_config").begin_object();
  json.member("mask_token_id", m.integer("dflash.mask_token_id"));
  write_integers(json, "target_layer_ids", *m.find_integers("dflash.target_layer_ids"));
  json.member("use_swa", attention.use_swa);
  if (attention.use_swa) {
    json.member("swa_window_size", window);
  }
  if (attention.causal) {
    json.member("causal", *attention.causal);
  }
  if (const std::optional<double> scale = m.find_number("dflash.embedding_scale")) {
    json.member("embedding_scale", *scale);
  }
  if (const std::optional<double> cap = m.find_number("dflash.final_logit_softcapping")) {
    json.member("final_logit_softcapping", *cap);
  }
  json.end_object();
  json.member("vocab_size", m.integer("dflash.vocab_size")).member("hidden_size", d.hidden);
  json.member("num_hidden_layers", d.layers).member("num_attention_heads", d.heads);
  json.member("num_key_value_heads", d.kv_heads).member("head_dim", d.head_dim);
  json.member("intermediate_size", d.ffn).member("hidden_act", "silu");
  if (const std::optional<int64_t> layers = m.find_integer("dflash.target_block_count")) {
    json.member("num_target_layers", *layers);
  }
  json.member("attention_bias", false).member("tie_word_embeddings", false);
  json.member("has_own_lm_head", facts.own_head);
  json.member("rms_norm_eps", m.number("dflash.attention.layer_norm_rms_epsilon"));
  json.member("rope_theta", m.number("dflash.rope.freq_base"));
  json.member("max_position_embeddings", m.integer("dflash.context_length"));
  if (window > 0) {
    json.member("sliding_window", window).member("use_sliding_window", true);
  }
  write_layer_types(json, attention.layer_types);
}

constexpr std::string_view kW4A4 = "NVFP4";
constexpr std::string_view kW4A16 = "W4A16_NVFP4";
constexpr std::string_view kMixed = "MIXED_PRECISION";

std::string_view algorithm_of(const HfNvfp4Module& module) {
  return module.calibrated ? kW4A4 : kW4A16;
}

/// As the metadata say, but four-bit activations need an input scale for every weight: without one
/// nobody could run the folder. And nothing is mixed where all modules are alike.
std::string algorithm(const Metadata& metadata, const HfTensorFacts& facts) {
  const std::string* named = metadata.find_string("general.quant_algo");
  if (named != nullptr && *named != kW4A4 && *named != kMixed) {
    return *named;
  }
  const auto calibrated = std::count_if(
      facts.nvfp4_modules.begin(),
      facts.nvfp4_modules.end(),
      [](const HfNvfp4Module& module) { return module.calibrated; }
  );
  if (calibrated == std::ssize(facts.nvfp4_modules)) {
    return std::string(kW4A4);
  }
  return std::string(named != nullptr && *named == kMixed && calibrated > 0 ? kMixed : kW4A16);
}

void write_producer(JsonWriter& json) {
  json.key("producer").begin_object().member("name", "octet").member("version", "1").end_object();
}

void write_group(JsonWriter& json, std::string_view name) {
  json.key(name).begin_object().member("num_bits", 4).member("type", "float");
  json.member("group_size", kNvfp4Group).member("dynamic", false).end_object();
}

void write_quantized_layers(JsonWriter& json, const std::vector<HfNvfp4Module>& modules) {
  json.key("quantized_layers").begin_object();
  for (const HfNvfp4Module& module : modules) {
    json.key(module.name).begin_object().member("quant_algo", algorithm_of(module));
    json.member("group_size", kNvfp4Group).end_object();
  }
  json.end_object();
}

/// A group of modules that take their activations alike.
void write_config_group(
    JsonWriter& json,
    std::string_view name,
    std::string_view algorithm,
    const std::vector<std::string>& targets
) {
  json.key(name).begin_object();
  write_group(json, "weights");
  if (algorithm == kW4A4) {
    write_group(json, "input_activations");
  }
  write_strings(json, "targets", targets);
  json.end_object();
}

std::vector<std::string> names_with(
    std::string_view algorithm, const std::vector<HfNvfp4Module>& modules
) {
  std::vector<std::string> names;
  for (const HfNvfp4Module& module : modules) {
    if (algorithm_of(module) == algorithm) {
      names.push_back(module.name);
    }
  }
  return names;
}

/// The flat form, as it stands in config.json.
void write_flat_quantization(JsonWriter& json, const Metadata& m, const HfTensorFacts& facts) {
  const std::string algorithm_of_all = algorithm(m, facts);
  const bool mixed = algorithm_of_all == kMixed;
  json.key("quantization_config").begin_object();
  json.member("quant_method", "modelopt").member("quant_algo", algorithm_of_all);
  json.key("config_groups").begin_object();
  if (mixed) {
    write_config_group(json, "group_0", kW4A4, names_with(kW4A4, facts.nvfp4_modules));
    write_config_group(json, "group_1", kW4A16, names_with(kW4A16, facts.nvfp4_modules));
  } else {
    write_config_group(json, "group_0", algorithm_of_all, {"Linear"});
  }
  json.end_object();
  if (mixed) {
    write_quantized_layers(json, facts.nvfp4_modules);
  }
  write_strings(json, "ignore", facts.full_precision_modules);
  write_producer(json);
  json.end_object();
}

std::string_view torch_name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "float32";
    case DType::kF16:
      return "float16";
    default:
      return "bfloat16";
  }
}

/// Every end token: those of a generation_config.json, else the end of the text and of a turn.
std::vector<int64_t> end_tokens(const Metadata& metadata) {
  if (auto ids = metadata.find_integers("tokenizer.ggml.eos_token_ids")) {
    return *std::move(ids);
  }
  std::vector<int64_t> ids;
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"}) {
    const std::optional<int64_t> id = metadata.find_integer(key);
    if (id && std::find(ids.begin(), ids.end(), *id) == ids.end()) {
      ids.push_back(*id);
    }
  }
  return ids;
}

}  // namespace

std::string hf_config(const Metadata& metadata, const HfTensorFacts& facts) {
  JsonWriter json;
  json.begin_object().member("dtype", torch_name(facts.prevailing));
  if (metadata.string("general.architecture") == "gemma4") {
    write_target(json, metadata, facts);
  } else {
    write_drafter(json, metadata, facts);
  }
  if (!facts.nvfp4_modules.empty()) {
    write_flat_quantization(json, metadata, facts);
  }
  json.end_object();
  return json.text();
}

std::string hf_generation_config(const Metadata& metadata) {
  JsonWriter json;
  json.begin_object();
  write_token_id(json, metadata, "bos_token_id", "tokenizer.ggml.bos_token_id");
  write_token_id(json, metadata, "pad_token_id", "tokenizer.ggml.padding_token_id");
  const std::vector<int64_t> ends = end_tokens(metadata);
  if (!ends.empty()) {
    write_integers(json, "eos_token_id", ends);
  }
  if (const auto suppressed = metadata.find_integers("tokenizer.ggml.suppress_tokens")) {
    write_integers(json, "suppress_tokens", *suppressed);
  }
  if (const std::optional<double> temperature = metadata.find_number("general.sampling.temp")) {
    json.member("do_sample", *temperature > 0.0).member("temperature", *temperature);
  }
  if (const std::optional<int64_t> top_k = metadata.find_integer("general.sampling.top_k")) {
    json.member("top_k", *top_k);
  }
  if (const std::optional<double> top_p = metadata.find_number("general.sampling.top_p")) {
    json.member("top_p", *top_p);
  }
  if (const std::optional<double> min_p = metadata.find_number("general.sampling.min_p")) {
    json.member("min_p", *min_p);
  }
  if (const auto penalty = metadata.find_number("general.sampling.penalty_repeat")) {
    json.member("repetition_penalty", *penalty);
  }
  json.end_object();
  return json.text();
}

std::string hf_quantization_config(const Metadata& metadata, const HfTensorFacts& facts) {
  JsonWriter json;
  json.begin_object();
  write_producer(json);
  const std::string algorithm_of_all = algorithm(metadata, facts);
  json.key("quantization").begin_object().member("quant_algo", algorithm_of_all);
  json.key("kv_cache_quant_algo").null();
  if (algorithm_of_all == kMixed) {
    write_quantized_layers(json, facts.nvfp4_modules);
  } else {
    json.member("group_size", kNvfp4Group);
    write_strings(json, "exclude_modules", facts.full_precision_modules);
  }
  json.end_object().end_object();
  return json.text();
}

}  // namespace octet
