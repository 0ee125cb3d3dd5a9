#include "octet/cli/synth/hf_config.h"

#include <string_view>
#include <vector>

#include "octet/cli/json_writer.h"

namespace octet::cli {
namespace {

void write_integers(JsonWriter& json, std::string_view name, const std::vector<int64_t>& values) {
  json.key(name).begin_array();
  for (const int64_t value : values) {
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

void write_rope(JsonWriter& json, std::string_view kind, double base, bool partial) {
  json.key(kind).begin_object().member("rope_theta", base);
  if (partial) {
    json.member("rope_type", "proportional").member("partial_rotary_factor", 0.25);
  } else {
    json.member("rope_type", "default");
  }
  json.end_object();
}

/// All layers of a preset are alike in this respect.
int64_t first_of(const Metadata& metadata, std::string_view key) {
  return metadata.integers_per_layer(key, metadata.integer("gemma4.block_count")).front();
}

void write_target(JsonWriter& json, const Metadata& m) {
  json.key("architectures").begin_array().value("Gemma4ForCausalLM").end_array();
  json.member("model_type", "gemma4_text");
  json.member("vocab_size", m.integer("gemma4.vocab_size"));
  json.member("vocab_size_per_layer_input", m.integer("gemma4.vocab_size"));
  json.member("hidden_size", m.integer("gemma4.embedding_length"));
  json.member("intermediate_size", first_of(m, "gemma4.feed_forward_length"));
  json.member("num_hidden_layers", m.integer("gemma4.block_count"));
  json.member("num_attention_heads", m.integer("gemma4.attention.head_count"));
  json.member("num_key_value_heads", first_of(m, "gemma4.attention.head_count_kv"));
  json.member("head_dim", m.integer("gemma4.attention.key_length_swa"));
  json.member("global_head_dim", m.integer("gemma4.attention.key_length"));
  json.member("sliding_window", m.integer("gemma4.attention.sliding_window"));
  json.member("num_kv_shared_layers", m.integer("gemma4.attention.shared_kv_layers"));
  json.member("hidden_size_per_layer_input", m.integer("gemma4.embedding_length_per_layer_input"));
  json.member("rms_norm_eps", m.number("gemma4.attention.layer_norm_rms_epsilon"));
  json.member("final_logit_softcapping", m.number("gemma4.final_logit_softcapping"));
  json.member("max_position_embeddings", m.integer("gemma4.context_length"));
  json.member("hidden_activation", "gelu_pytorch_tanh").member("attention_k_eq_v", false);
  json.member("enable_moe_block", false).member("tie_word_embeddings", true);
  write_layer_types(json, *m.find_integers("gemma4.attention.sliding_window_pattern"));
  json.key("rope_parameters").begin_object();
  write_rope(json, "sliding_attention", m.number("gemma4.rope.freq_base_swa"), false);
  write_rope(json, "full_attention", m.number("gemma4.rope.freq_base"), true);
  json.end_object();
  json.member("bos_token_id", 2).member("pad_token_id", 0);
}

void write_drafter(JsonWriter& json, const Metadata& m) {
  json.key("architectures").begin_array().value("DFlashDraftModel").end_array();
  json.member("model_type", "qwen3");
  json.member("block_size", m.integer("dflash.block_size"));
  json.key("dflash_config").begin_object();
  json.member("mask_token_id", m.integer("dflash.mask_token_id"));
  write_integers(json, "target_layer_ids", *m.find_integers("dflash.target_layer_ids"));
  json.member("use_swa", true)
      .member("swa_window_size", m.integer("dflash.attention.sliding_window"));
  json.member("causal", false).end_object();
  json.member("vocab_size", m.integer("dflash.vocab_size"));
  json.member("hidden_size", m.integer("dflash.embedding_length"));
  json.member("num_hidden_layers", m.integer("dflash.block_count"));
  json.member("num_attention_heads", m.integer("dflash.attention.head_count"));
  json.member("num_key_value_heads", m.integer("dflash.attention.head_count_kv"));
  json.member("head_dim", m.integer("dflash.attention.key_length"));
  json.member("intermediate_size", m.integer("dflash.feed_forward_length"));
  json.member("hidden_act", "silu")
      .member("attention_bias", false)
      .member("tie_word_embeddings", false);
  json.member("rms_norm_eps", m.number("dflash.attention.layer_norm_rms_epsilon"));
  json.member("rope_theta", m.number("dflash.rope.freq_base"));
  json.member("max_position_embeddings", m.integer("dflash.context_length"));
  json.member("sliding_window", m.integer("dflash.attention.sliding_window"));
  write_layer_types(json, *m.find_integers("dflash.attention.sliding_window_pattern"));
}

}  // namespace

std::string hf_config(const Metadata& metadata) {
  JsonWriter json;
  json.begin_object().member("dtype", "bfloat16");
  if (metadata.string("general.architecture") == "gemma4") {
    write_target(json, metadata);
  } else {
    write_drafter(json, metadata);
  }
  json.end_object();
  return json.text();
}

std::string hf_generation_config(const Metadata& metadata) {
  JsonWriter json;
  json.begin_object()
      .member("bos_token_id", 2)
      .member("pad_token_id", 0)
      .key("eos_token_id")
      .begin_array();
  json.value(1);
  if (const auto end_of_turn = metadata.find_integer("tokenizer.ggml.eot_token_id")) {
    json.value(*end_of_turn);
  }
  json.end_array().end_object();
  return json.text();
}

}  // namespace octet::cli
