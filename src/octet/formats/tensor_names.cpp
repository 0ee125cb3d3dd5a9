#include "octet/formats/tensor_names.h"

#include <charconv>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/formats/message_text.h"
#include "octet/formats/model_metadata.h"

namespace octet {

namespace {

/// Gathers the tensors of one layer: "blk.N." + name here, "layers.N." + name in Hugging Face
/// files.
class LayerTensors {
 public:
  LayerTensors(std::vector<ExpectedTensor>& all, int64_t layer) : all_(all), layer_(layer) {}

  void add(
      const char* name,
      const char* hf_name,
      std::vector<int64_t> shape,
      TensorPresence presence = TensorPresence::kRequired
  ) {
    all_.push_back(
        {fmt::format("blk.{}.{}.weight", layer_, name),
         fmt::format("layers.{}.{}", layer_, hf_name),
         std::move(shape),
         presence}
    );
  }

 private:
  std::vector<ExpectedTensor>& all_;
  int64_t layer_;
};

void add_gemma4_layer(std::vector<ExpectedTensor>& all, const Gemma4Dimensions& d, int64_t layer) {
  LayerTensors tensors(all, layer);
  const auto index = static_cast<size_t>(layer);
  const int64_t head = d.head_dim(layer);
  const int64_t q = d.heads * head;
  const int64_t kv = d.kv_heads[index] * head;
  const int64_t ffn = d.ffn[index];
  const TensorPresence own = d.owns_kv(layer) ? TensorPresence::kRequired : TensorPresence::kUnused;

  tensors.add("attn_norm", "input_layernorm.weight", {d.hidden});
  tensors.add("attn_q", "self_attn.q_proj.weight", {q, d.hidden});
  tensors.add("attn_k", "self_attn.k_proj.weight", {kv, d.hidden}, own);
  tensors.add("attn_v", "self_attn.v_proj.weight", {kv, d.hidden}, own);
  tensors.add("attn_output", "self_attn.o_proj.weight", {d.hidden, q});
  tensors.add("attn_q_norm", "self_attn.q_norm.weight", {head});
  tensors.add("attn_k_norm", "self_attn.k_norm.weight", {head}, own);
  tensors.add("post_attention_norm", "post_attention_layernorm.weight", {d.hidden});
  tensors.add("ffn_norm", "pre_feedforward_layernorm.weight", {d.hidden});
  tensors.add("ffn_gate", "mlp.gate_proj.weight", {ffn, d.hidden});
  tensors.add("ffn_up", "mlp.up_proj.weight", {ffn, d.hidden});
  tensors.add("ffn_down", "mlp.down_proj.weight", {d.hidden, ffn});
  tensors.add("post_ffw_norm", "post_feedforward_layernorm.weight", {d.hidden});
  if (d.per_layer_input > 0) {
    tensors.add("inp_gate", "per_layer_input_gate.weight", {d.per_layer_input, d.hidden});
    tensors.add("proj", "per_layer_projection.weight", {d.hidden, d.per_layer_input});
    tensors.add("post_norm", "post_per_layer_input_norm.weight", {d.hidden});
  }
  tensors.add("layer_output_scale", "layer_scalar", {1}, TensorPresence::kOptional);
}

/// Every tensor of a target: its name in GGUF, in a Hugging Face folder, and its shape.
std::vector<ExpectedTensor> gemma4_tensors(const Gemma4Dimensions& d) {
  std::vector<ExpectedTensor> all;
  all.push_back({"token_embd.weight", "embed_tokens.weight", {d.vocabulary, d.hidden}});
  if (d.per_layer_input > 0) {
    const int64_t width = d.layers * d.per_layer_input;
    all.push_back(
        {"per_layer_token_embd.weight", "embed_tokens_per_layer.weight", {kAnyDimension, width}}
    );
    all.push_back(
        {"per_layer_model_proj.weight", "per_layer_model_projection.weight", {width, d.hidden}}
    );
    all.push_back(
        {"per_layer_proj_norm.weight", "per_layer_projection_norm.weight", {d.per_layer_input}}
    );
  }
  all.push_back({"output_norm.weight", "norm.weight", {d.hidden}});
  all.push_back({"rope_freqs.weight", "", {d.head_dim_full / 2}});
  all.push_back(
      {"output.weight", "lm_head.weight", {d.vocabulary, d.hidden}, TensorPresence::kOptional}
  );
  for (int64_t layer = 0; layer < d.layers; ++layer) {
    add_gemma4_layer(all, d, layer);
  }
  return all;
}

/// The same of a drafter.
std::vector<ExpectedTensor> dflash_tensors(const DflashDimensions& d) {
  const int64_t q = d.heads * d.head_dim;
  const int64_t kv = d.kv_heads * d.head_dim;
  std::vector<ExpectedTensor> all;
  all.push_back({"fc.weight", "fc.weight", {d.hidden, d.taps * d.hidden}});
  all.push_back({"enc.output_norm.weight", "hidden_norm.weight", {d.hidden}});
  all.push_back({"output_norm.weight", "norm.weight", {d.hidden}});
  const int64_t vocabulary = d.vocabulary > 0 ? d.vocabulary : kAnyDimension;
  all.push_back(
      {"output.weight", "lm_head.weight", {vocabulary, d.hidden}, TensorPresence::kOptional}
  );
  for (int64_t layer = 0; layer < d.layers; ++layer) {
    LayerTensors tensors(all, layer);
    tensors.add("attn_norm", "input_layernorm.weight", {d.hidden});
    tensors.add("attn_q", "self_attn.q_proj.weight", {q, d.hidden});
    tensors.add("attn_k", "self_attn.k_proj.weight", {kv, d.hidden});
    tensors.add("attn_v", "self_attn.v_proj.weight", {kv, d.hidden});
    tensors.add("attn_output", "self_attn.o_proj.weight", {d.hidden, q});
    tensors.add("attn_q_norm", "self_attn.q_norm.weight", {d.head_dim});
    tensors.add("attn_k_norm", "self_attn.k_norm.weight", {d.head_dim});
    tensors.add("ffn_norm", "post_attention_layernorm.weight", {d.hidden});
    tensors.add("ffn_gate", "mlp.gate_proj.weight", {d.ffn, d.hidden});
    tensors.add("ffn_up", "mlp.up_proj.weight", {d.ffn, d.hidden});
    tensors.add("ffn_down", "mlp.down_proj.weight", {d.hidden, d.ffn});
  }
  return all;
}

}  // namespace

std::vector<ExpectedTensor> expected_tensors(const Metadata& metadata) {
  const std::string& architecture = metadata.string("general.architecture");
  if (architecture == "gemma4") {
    return gemma4_tensors(gemma4_dimensions(metadata));
  }
  if (architecture == "dflash") {
    return dflash_tensors(dflash_dimensions(metadata));
  }
  throw Error(
      ErrorKind::kUnsupported,
      fmt::format(
          "architecture {} is not supported; expected a gemma4 target or a dflash drafter",
          shown(architecture)
      )
  );
}

std::optional<int64_t> layer_number(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) {
    return std::nullopt;
  }
  int64_t layer = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kPrefix.size(), end, layer);
  const bool whole = error == std::errc() && rest != end && *rest == '.';
  return whole ? std::optional(layer) : std::nullopt;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (const int64_t size : shape) {
    text += text.size() == 1 ? "" : ", ";
    text += size == kAnyDimension ? "any" : fmt::format("{}", size);
  }
  return text + "]";
}

}  // namespace octet
