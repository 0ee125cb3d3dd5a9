// Small valid files of every format: where mutation and fuzzing begin. Deterministic.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "octet/formats/safetensors_writer.h"
#include "support/random_models.h"
#include "support/temporary_directory.h"
#include "support/write_checkpoint.h"

namespace octet::test {

inline std::vector<std::string> gguf_seeds() {
  const TemporaryDirectory directory;
  const std::string path = directory.file("seed.gguf");
  std::vector<std::string> seeds;
  GemmaShape target;
  target.hidden = 16;
  target.vocabulary = 8;
  target.ple_vocabulary = 8;
  target.ple_width = 4;
  target.feed_forward = {16, 16, 16, 16};
  target.heads = 2;
  target.kv_heads = {1, 1, 1, 1};
  target.dead_kv_tensors = true;
  target.arrays = true;
  const std::vector<std::string> words = {"<pad>", "a", "\u2581b"};
  const std::vector<std::string_view> tokens(words.begin(), words.end());
  const std::shared_ptr<Checkpoint> gemma = make_gemma(target, 1);
  gemma->metadata.set("tokenizer.ggml.tokens", MetadataArray(tokens));
  write_gguf(path, gemma->metadata, gemma->tensors());
  seeds.push_back(read_text(path));
  for (const DType dtype : {DType::kQ4_1, DType::kNVFP4, DType::kQ8_0}) {
    DFlashShape draft;
    draft.dtype = dtype;
    draft.hidden = 64;
    draft.feed_forward = 64;
    draft.windowed = {true};
    draft.causal = {false};
    draft.taps = {1};
    draft.head_dim = 16;
    draft.own_head = true;
    const std::shared_ptr<Checkpoint> dflash = make_dflash(draft, 2);
    write_gguf(path, dflash->metadata, dflash->tensors());
    seeds.push_back(read_text(path));
  }
  return seeds;
}

inline std::vector<std::string> safetensors_seeds() {
  const TemporaryDirectory directory;
  const std::string path = directory.file("seed.safetensors");
  const std::vector<SafetensorsSpec> specs = {
      {"fc.weight", "U8", {2, 16}},
      {"fc.weight_scale", "F8_E4M3", {2, 2}},
      {"fc.weight_scale_2", "F32", {}},
      {"fc.input_scale", "F32", {1}},
      {"head.weight_packed", "U8", {1, 8}},
      {"head.weight_scale", "F8_E4M3", {1, 1}},
      {"head.weight_global_scale", "F32", {1}},
      {"norm.weight", "BF16", {8}},
      {"layer_scalar", "F16", {1}},
      {"q.weight", "F32", {2, 3}}};
  const std::vector<std::string> data = {
      std::string(32, '\x21'),
      std::string(4, '\x38'),
      std::string("\0\0\0\x3F", 4),
      std::string("\0\0\0\x3F", 4),
      std::string(8, '\x12'),
      std::string(1, '\x38'),
      std::string("\0\0\0\x40", 4),
      std::string(16, '\x3F'),
      std::string(2, '\x3C'),
      std::string(24, '\x3F')};
  SafetensorsWriter writer(path, specs, {{"format", "pt"}});
  for (size_t i = 0; i < specs.size(); ++i) {
    writer.write_tensor(specs[i].name, bytes_of(data[i]));
  }
  writer.finish();
  return {read_text(path)};
}

inline std::vector<std::string> hf_config_seeds() {
  return {
      R"({"architectures":["DFlashDraftModel"],"model_type":"qwen3","block_size":8,"dflash_config":{"mask_token_id":4,)"
      R"("target_layer_ids":[1,5],"use_swa":true,"swa_window_size":48,"causal":false},"hidden_size":128,)"
      R"("num_hidden_layers":2,"num_attention_heads":8,"num_key_value_heads":2,"head_dim":32,"intermediate_size":256,)"
      R"("rms_norm_eps":1e-06,"vocab_size":2048,"max_position_embeddings":4096,"rope_theta":1000000.0,)"
      R"("rope_scaling":null,"num_target_layers":12,"layer_types":["sliding_attention","full_attention"],)"
      R"("sliding_window":48,"quantization_config":{"quant_algo":"NVFP4","group_size":16}})",
      R"({"model_type":"gemma4","eos_token_id":[1,106],"text_config":{"vocab_size":64,"hidden_size":32,)"
      R"("intermediate_size":48,"num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8,)"
      R"("global_head_dim":16,"layer_types":["sliding_attention","full_attention","full_attention"],"sliding_window":8,)"
      R"("num_kv_shared_layers":1,"use_double_wide_mlp":true,"per_layer_config":{"1":{"head_dim":16}},)"
      R"("rope_parameters":{"full_attention":{"rope_type":"proportional","rope_theta":1e6,)"
      R"("partial_rotary_factor":0.25}},"max_position_embeddings":64}})"};
}

inline std::vector<std::string> request_body_seeds() {
  return {
      R"({"messages":[{"role":"system","content":"a"},{"role":"user","content":"b"}],"stream":true,)"
      R"("temperature":0.5,"top_k":4,"stop":["x"],"n":2,"logprobs":true,"top_logprobs":2,)"
      R"("speculative":{"enabled":true,"max_length":3},"stream_options":{"include_usage":true}})",
      R"({"messages":[{"role":"user","content":[{"type":"text","text":"b"}]}],"tools":[{"type":)"
      R"("function","function":{"name":"f","parameters":{"type":"object","properties":{"a":)"
      R"({"type":"string","enum":["x"]}}}}}],"tool_choice":"auto","reasoning_effort":"low",)"
      R"("chat_template_kwargs":{"enable_thinking":true,"thinking_token_budget":3}})",
      R"({"prompt":["a",[1,2]],"max_tokens":3,"logit_bias":{"5":-100},"seed":-1,"logprobs":2})",
      R"({"content":"a<turn|>","with_pieces":true,"tokens":[1,2,3]})"};
}

/// Corpus name (the fuzz target without "fuzz_") to its seeds.
inline std::map<std::string, std::vector<std::string>> format_seeds() {
  return {
      {"gguf", gguf_seeds()},
      {"safetensors", safetensors_seeds()},
      {"hf_config", hf_config_seeds()},
      {"request_bodies", request_body_seeds()}};
}

}  // namespace octet::test
