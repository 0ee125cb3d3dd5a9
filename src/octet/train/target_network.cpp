#include "octet/train/target_network.h"

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/formats/rope_frequencies.h"
#include "octet/formats/tensor_names.h"
#include "octet/train/random_weights.h"

namespace octet::train {
namespace {

std::string layer_name(int64_t layer, const char* part) {
  return fmt::format("blk.{}.{}.weight", layer, part);
}

/// Which keys the rows of one sequence see: [length, length].
Tensor causal_mask(int64_t length, int64_t window) {
  const Tensor row = at::arange(length, at::kLong).unsqueeze(1);
  const Tensor column = at::arange(length, at::kLong).unsqueeze(0);
  Tensor seen = column <= row;
  if (window > 0) {
    seen = at::logical_and(seen, row - column < window);
  }
  return seen;
}

}  // namespace

struct TargetNetwork::KeysAndValues {
  Tensor keys;    // [sequences, K, length, d]
  Tensor values;  // [sequences, K, length, d]
};

/// What all layers of a batch share.
struct TargetNetwork::Batch {
  int64_t sequences = 0;
  int64_t length = 0;
  Angles sliding_angles;  // [sequences * length, pairs]
  Angles full_angles;
  Tensor sliding_hidden;  // [length, length]: keys that a row does not see
  Tensor full_hidden;
  std::map<int64_t, KeysAndValues> stored;  // of layers that own them

  const Angles& angles(const Gemma4LayerConfig& layer) const {
    return layer.sliding ? sliding_angles : full_angles;
  }
};

TargetNetwork::TargetNetwork(Gemma4Config config, const Tensor& rope_divisors, Precision precision)
    : config_(std::move(config)), precision_(precision) {
  constexpr double kNever = 1e20;
  full_pairs_ = (rope_divisors < kNever).sum().item<int64_t>();
  // Divisors are 1 or "never", in this order; anything else is no gemma4 that octet trains.
  OCTET_CHECK(at::all(rope_divisors.slice(0, 0, full_pairs_) == 1.0).item<bool>());
}

Tensor TargetNetwork::states(const Parameters& parameters, const Tensor& tokens) const {
  const Tensor& table = parameters.at("token_embd.weight");
  const at::ScalarType type = table.scalar_type();
  Batch batch;
  batch.sequences = tokens.size(0);
  batch.length = tokens.size(1);
  const Tensor positions = at::arange(batch.length, at::kLong).repeat({batch.sequences});
  const int64_t sliding_pairs = config_.sliding_head_dim / 2;
  batch.sliding_angles = rope_angles(
      positions, config_.sliding_rope_base, config_.sliding_head_dim, sliding_pairs, type
  );
  batch.full_angles =
      rope_angles(positions, config_.full_rope_base, config_.full_head_dim, full_pairs_, type);
  batch.sliding_hidden = at::logical_not(causal_mask(batch.length, config_.window));
  batch.full_hidden = at::logical_not(causal_mask(batch.length, 0));

  const Tensor flat = tokens.reshape({-1});
  Tensor x = at::embedding(table, flat) * std::sqrt(static_cast<double>(config_.hidden));
  Tensor inputs;
  if (config_.ple_width > 0) {
    inputs = per_layer_inputs(parameters, flat, x);  // [rows, L, P]
  }
  for (int64_t l = 0; l < config_.layer_count(); ++l) {
    x = x + attention(parameters, l, x, batch);
    x = x + mlp(parameters, l, x);
    if (config_.ple_width > 0) {
      x = x + per_layer_branch(parameters, l, x, inputs.select(1, l));
    }
    if (const Tensor* scale = parameters.find(layer_name(l, "layer_output_scale"))) {
      x = x * *scale;
    }
  }
  return rms_norm(x, parameters.at("output_norm.weight"), config_.norm_epsilon);
}

/// u = (rms(M x / sqrt(D)) + T[t] * sqrt(P)) / sqrt(2)
Tensor TargetNetwork::per_layer_inputs(
    const Parameters& parameters, const Tensor& tokens, const Tensor& embedded
) const {
  const Tensor& table = parameters.at("per_layer_token_embd.weight");
  const std::vector<int64_t> shape = {tokens.size(0), config_.layer_count(), config_.ple_width};
  const Tensor ids = tokens.masked_fill(tokens >= table.size(0), 0);
  const Tensor of_token =
      at::embedding(table, ids) * std::sqrt(static_cast<double>(config_.ple_width));
  Tensor of_context = linear(embedded, parameters.at("per_layer_model_proj.weight"), precision_) /
                      std::sqrt(static_cast<double>(config_.hidden));
  of_context = rms_norm(
      of_context.reshape(shape), parameters.at("per_layer_proj_norm.weight"), config_.norm_epsilon
  );
  return (of_context + of_token.reshape(shape)) * std::sqrt(0.5);
}

/// k = rope(rms(k; k_norm)), v = rms(v)
TargetNetwork::KeysAndValues TargetNetwork::keys_and_values(
    const Parameters& parameters, int64_t l, const Tensor& normed, const Batch& batch
) const {
  const Gemma4LayerConfig& c = config_.layer(l);
  const auto heads = [&](const char* part) {
    return linear(normed, parameters.at(layer_name(l, part)), precision_)
        .reshape({-1, c.kv_heads, c.head_dim});
  };
  const auto by_head = [&](const Tensor& rows) {
    return rows.reshape({batch.sequences, batch.length, c.kv_heads, c.head_dim}).transpose(1, 2);
  };
  const Tensor keys = rotate(
      rms_norm(heads("attn_k"), parameters.at(layer_name(l, "attn_k_norm")), config_.norm_epsilon),
      batch.angles(c).cosines,
      batch.angles(c).sines
  );
  const Tensor values = rms_norm(heads("attn_v"), Tensor(), config_.norm_epsilon);
  return {by_head(keys), by_head(values)};
}

/// rms(Wo softmax(q K^T) V; post norm): scores are unscaled, the norms of q and k carry the scale.
Tensor TargetNetwork::attention(
    const Parameters& parameters, int64_t l, const Tensor& x, Batch& batch
) const {
  const Gemma4LayerConfig& c = config_.layer(l);
  const int64_t group = c.heads / c.kv_heads;
  const Tensor normed =
      rms_norm(x, parameters.at(layer_name(l, "attn_norm")), config_.norm_epsilon);
  Tensor query = linear(normed, parameters.at(layer_name(l, "attn_q")), precision_)
                     .reshape({-1, c.heads, c.head_dim});
  query = rms_norm(query, parameters.at(layer_name(l, "attn_q_norm")), config_.norm_epsilon);
  query = rotate(query, batch.angles(c).cosines, batch.angles(c).sines);
  if (c.owns_kv) {
    batch.stored[l] = keys_and_values(parameters, l, normed, batch);
  }
  const KeysAndValues& donor = batch.stored.at(c.donor);

  // Query heads that share a key head become rows of one product.
  const Tensor grouped =
      query.reshape({batch.sequences, batch.length, c.kv_heads, group, c.head_dim})
          .permute({0, 2, 3, 1, 4})
          .reshape({batch.sequences, c.kv_heads, group * batch.length, c.head_dim});
  Tensor scores = at::matmul(grouped, donor.keys.transpose(2, 3));
  scores = scores.reshape({batch.sequences, c.kv_heads, group, batch.length, batch.length});
  scores = scores.masked_fill(
      c.sliding ? batch.sliding_hidden : batch.full_hidden, -std::numeric_limits<double>::infinity()
  );
  const Tensor shares =
      at::softmax(scores, -1).reshape({batch.sequences, c.kv_heads, group * batch.length, -1});
  const Tensor attended =
      at::matmul(shares, donor.values)
          .reshape({batch.sequences, c.kv_heads, group, batch.length, c.head_dim})
          .permute({0, 3, 1, 2, 4})
          .reshape({batch.sequences * batch.length, int64_t{c.heads} * c.head_dim});
  return rms_norm(
      linear(attended, parameters.at(layer_name(l, "attn_output")), precision_),
      parameters.at(layer_name(l, "post_attention_norm")),
      config_.norm_epsilon
  );
}

/// rms(Wdown(gelu(Wgate m) * (Wup m)); post norm), m = rms(x)
Tensor TargetNetwork::mlp(const Parameters& parameters, int64_t l, const Tensor& x) const {
  const Tensor m = rms_norm(x, parameters.at(layer_name(l, "ffn_norm")), config_.norm_epsilon);
  const Tensor gated = gelu_gate(
      linear(m, parameters.at(layer_name(l, "ffn_gate")), precision_),
      linear(m, parameters.at(layer_name(l, "ffn_up")), precision_)
  );
  return rms_norm(
      linear(gated, parameters.at(layer_name(l, "ffn_down")), precision_),
      parameters.at(layer_name(l, "post_ffw_norm")),
      config_.norm_epsilon
  );
}

/// rms(Wpp(gelu(Wpg x) * u_l); post norm); the gate reads the residual itself.
Tensor TargetNetwork::per_layer_branch(
    const Parameters& parameters, int64_t l, const Tensor& x, const Tensor& inputs
) const {
  const Tensor gated =
      gelu_gate(linear(x, parameters.at(layer_name(l, "inp_gate")), precision_), inputs);
  return rms_norm(
      linear(gated, parameters.at(layer_name(l, "proj")), precision_),
      parameters.at(layer_name(l, "post_norm")),
      config_.norm_epsilon
  );
}

Parameters initial_target(const Checkpoint& like, uint64_t seed) {
  constexpr double kPostNorm = 0.5;
  constexpr double kPostPerLayerNorm = 0.2;
  RandomWeights random(seed);
  Parameters parameters;
  const auto per_layer_width = static_cast<double>(
      like.metadata.find_integer("gemma4.embedding_length_per_layer_input").value_or(0)  // none
  );
  const auto vector_value = [](const std::string& name, int64_t size) {
    if (name.ends_with("attn_q_norm.weight")) {
      return 1.0 / std::sqrt(static_cast<double>(size));
    }
    if (name.ends_with("post_attention_norm.weight") || name.ends_with("post_ffw_norm.weight")) {
      return kPostNorm;
    }
    return name.ends_with("post_norm.weight") ? kPostPerLayerNorm : 1.0;
  };
  for (const ExpectedTensor& tensor : expected_tensors(like.metadata)) {
    if (tensor.presence == TensorPresence::kUnused || tensor.name == kRopeFrequenciesName ||
        tensor.name == "output.weight") {
      continue;
    }
    std::vector<int64_t> shape = tensor.shape;
    if (shape.size() == 1) {
      parameters.add(tensor.name, at::full(shape, vector_value(tensor.name, shape[0]), at::kFloat));
      continue;
    }
    const bool per_layer_table = tensor.name == "per_layer_token_embd.weight";
    if (shape[0] == kAnyDimension) {
      shape[0] = like.at(tensor.name).rows();
    }
    const double width = per_layer_table ? per_layer_width : static_cast<double>(shape[1]);
    parameters.add(tensor.name, random.normal(shape, 1.0 / std::sqrt(width)));
  }
  return parameters;
}

}  // namespace octet::train
