#include "octet/train/drafter_network.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/train/random_weights.h"

namespace octet::train {
namespace {

std::string layer_name(size_t layer, const char* part) {
  return fmt::format("blk.{}.{}.weight", layer, part);
}

}  // namespace

/// What all layers of a batch share.
struct DrafterNetwork::Batch {
  const DraftBlocks& blocks;
  Tensor fused;           // [rows, D]
  Angles feature_angles;  // [rows, d / 2]
  Angles block_angles;    // [blocks * block, d / 2]
};

/// Keys and values of the rows before each anchor.
struct DrafterNetwork::Context {
  Tensor keys;    // [blocks, length, K * d]
  Tensor values;  // [blocks, length, K * d]
};

DrafterNetwork::DrafterNetwork(
    DFlashConfig config, Tensor embedding, double embedding_scale, Precision precision
)
    : config_(std::move(config)),
      embedding_(std::move(embedding)),
      embedding_scale_(embedding_scale),
      precision_(precision) {}

Tensor DrafterNetwork::states(const Parameters& parameters, const DraftBlocks& blocks) const {
  const int64_t count = blocks.blocks();
  const int64_t block = config_.block;
  const at::ScalarType type = embedding_.scalar_type();
  const int64_t half = config_.head_dim / 2;

  // The anchor and block - 1 masks at the positions from the anchor on.
  const Tensor offsets = at::arange(block, at::kLong);
  const Tensor positions = (blocks.anchor_positions.unsqueeze(1) + offsets).reshape({-1});
  Tensor tokens = at::full({count, block}, config_.mask_token, at::kLong);
  tokens.select(1, 0).copy_(blocks.anchor_tokens);
  Tensor h = at::index_select(embedding_, 0, tokens.reshape({-1})) * embedding_scale_;

  const Batch batch{
      blocks,
      fused(parameters, blocks.features),
      rope_angles(blocks.feature_positions, config_.rope_base, config_.head_dim, half, type),
      rope_angles(positions, config_.rope_base, config_.head_dim, half, type)};
  for (size_t l = 0; l < config_.layers.size(); ++l) {
    h = h + attention(parameters, l, h, batch);
    h = h + mlp(parameters, l, h);
  }
  const Tensor masks = h.reshape({count, block, config_.hidden}).slice(1, 1, block);
  return rms_norm(
      masks.reshape({-1, config_.hidden}), parameters.at("output_norm.weight"), config_.norm_epsilon
  );
}

/// g = rms(fc u; fusion norm)
Tensor DrafterNetwork::fused(const Parameters& parameters, const Tensor& features) const {
  return rms_norm(
      linear(features, parameters.at("fc.weight"), precision_),
      parameters.at("enc.output_norm.weight"),
      config_.norm_epsilon
  );
}

/// k = rope(rms(Wk g)), v = Wv g of every row, then the `length` rows before each anchor. Rows that
/// a block's sequence does not have are those of others here and are masked.
DrafterNetwork::Context DrafterNetwork::context(
    const Parameters& parameters, size_t layer, const Batch& batch, int64_t length
) const {
  const int64_t width = int64_t{config_.kv_heads} * config_.head_dim;
  Tensor keys = linear(batch.fused, parameters.at(layer_name(layer, "attn_k")), precision_);
  keys = keys.reshape({-1, config_.kv_heads, config_.head_dim});
  keys = rms_norm(keys, parameters.at(layer_name(layer, "attn_k_norm")), config_.norm_epsilon);
  keys = rotate(keys, batch.feature_angles.cosines, batch.feature_angles.sines);
  const Tensor values = linear(batch.fused, parameters.at(layer_name(layer, "attn_v")), precision_);
  const Tensor rows =
      (batch.blocks.anchor_rows.unsqueeze(1) + at::arange(-length, 0, at::kLong)).clamp_min(0);
  return {at::embedding(keys.reshape({-1, width}), rows), at::embedding(values, rows)};
}

/// Which of [context, block] a row of a block sees: [blocks, 1, 1, block, length + block]. With the
/// anchor at position n, context column i is position n - length + i and row j is position n + j.
Tensor DrafterNetwork::visible(size_t layer, const Batch& batch, int64_t length) const {
  const DFlashLayerConfig& rule = config_.layers[layer];
  const int64_t block = config_.block;
  const int64_t count = batch.blocks.blocks();
  const Tensor column = at::arange(length, at::kLong);
  const Tensor row = at::arange(block, at::kLong).unsqueeze(1);
  const Tensor present = column.unsqueeze(0) >=
                         length - batch.blocks.anchor_positions.unsqueeze(1);  // [blocks, length]
  Tensor of_context = present.unsqueeze(1).expand({count, block, length});
  if (rule.window > 0) {
    const Tensor distance = row + length - column.unsqueeze(0);  // [block, length]
    of_context = at::logical_and(of_context, distance < rule.window);
  }
  Tensor of_block = at::ones({block, block}, at::kBool);
  if (rule.causal) {
    of_block = at::arange(block, at::kLong).unsqueeze(0) <= row;
  }
  return at::cat({of_context, of_block.expand({count, block, block})}, 2).unsqueeze(1).unsqueeze(1);
}

/// Wo softmax(scale q [k_context; k_block]^T) [v_context; v_block]
Tensor DrafterNetwork::attention(
    const Parameters& parameters, size_t layer, const Tensor& x, const Batch& batch
) const {
  const int64_t count = batch.blocks.blocks();
  const int64_t block = config_.block;
  const int64_t d = config_.head_dim;
  const int64_t kv_heads = config_.kv_heads;
  const int64_t group = config_.heads / kv_heads;
  const DFlashLayerConfig& rule = config_.layers[layer];
  const int64_t longest = batch.blocks.anchor_positions.max().item<int64_t>();
  const int64_t length = rule.window == 0 ? longest : std::min(rule.window - 1, longest);

  const Tensor normed =
      rms_norm(x, parameters.at(layer_name(layer, "attn_norm")), config_.norm_epsilon);
  const auto head_rows = [&](const char* part, const char* norm, int64_t heads) {
    Tensor rows = linear(normed, parameters.at(layer_name(layer, part)), precision_);
    rows = rows.reshape({-1, heads, d});
    rows = rms_norm(rows, parameters.at(layer_name(layer, norm)), config_.norm_epsilon);
    return rotate(rows, batch.block_angles.cosines, batch.block_angles.sines);
  };
  const Tensor query = head_rows("attn_q", "attn_q_norm", config_.heads);
  const Tensor block_keys = head_rows("attn_k", "attn_k_norm", kv_heads);
  const Tensor block_values =
      linear(normed, parameters.at(layer_name(layer, "attn_v")), precision_);

  const Context before = context(parameters, layer, batch, length);
  const auto joined = [&](const Tensor& context_rows, const Tensor& block_rows) {
    const Tensor rows = at::cat({context_rows, block_rows.reshape({count, block, -1})}, 1);
    return rows.reshape({count, length + block, kv_heads, d}).transpose(1, 2);
  };
  const Tensor keys = joined(before.keys, block_keys);        // [blocks, K, length + block, d]
  const Tensor values = joined(before.values, block_values);  // [blocks, K, length + block, d]

  // Query heads that share a key head become rows of one product.
  const Tensor grouped = query.reshape({count, block, kv_heads, group, d})
                             .permute({0, 2, 3, 1, 4})
                             .reshape({count, kv_heads, group * block, d});
  Tensor scores = at::matmul(grouped * config_.attention_scale, keys.transpose(2, 3));
  scores = scores.reshape({count, kv_heads, group, block, length + block});
  scores = scores.masked_fill(
      at::logical_not(visible(layer, batch, length)), -std::numeric_limits<double>::infinity()
  );
  const Tensor shares =
      at::softmax(scores, -1).reshape({count, kv_heads, group * block, length + block});
  const Tensor attended = at::matmul(shares, values)
                              .reshape({count, kv_heads, group, block, d})
                              .permute({0, 3, 1, 2, 4})
                              .reshape({count * block, config_.heads * d});
  return linear(attended, parameters.at(layer_name(layer, "attn_output")), precision_);
}

/// Wdown(silu(Wgate y) * (Wup y)), y = rms(x)
Tensor DrafterNetwork::mlp(const Parameters& parameters, size_t layer, const Tensor& x) const {
  const Tensor y = rms_norm(x, parameters.at(layer_name(layer, "ffn_norm")), config_.norm_epsilon);
  const Tensor gated = silu_gate(
      linear(y, parameters.at(layer_name(layer, "ffn_gate")), precision_),
      linear(y, parameters.at(layer_name(layer, "ffn_up")), precision_)
  );
  return linear(gated, parameters.at(layer_name(layer, "ffn_down")), precision_);
}

Parameters initial_drafter(const DFlashConfig& config, uint64_t seed, InitialScale scale) {
  constexpr double kPublishedDeviation = 0.02;
  Parameters parameters;
  RandomWeights random(seed);
  const auto matrix = [&](const std::string& name, int64_t rows, int64_t cols) {
    const double deviation = scale == InitialScale::kFixed
                                 ? kPublishedDeviation
                                 : 1.0 / std::sqrt(static_cast<double>(cols));
    parameters.add(name, random.normal({rows, cols}, deviation));
  };
  const auto norm = [&](const std::string& name, int64_t size) {
    parameters.add(name, at::ones({size}));
  };
  const int64_t hidden = config.hidden;
  const int64_t query_width = int64_t{config.heads} * config.head_dim;
  const int64_t kv_width = int64_t{config.kv_heads} * config.head_dim;
  matrix("fc.weight", hidden, static_cast<int64_t>(config.taps.size()) * hidden);
  norm("enc.output_norm.weight", hidden);
  norm("output_norm.weight", hidden);
  for (size_t l = 0; l < config.layers.size(); ++l) {
    norm(layer_name(l, "attn_norm"), hidden);
    matrix(layer_name(l, "attn_q"), query_width, hidden);
    matrix(layer_name(l, "attn_k"), kv_width, hidden);
    matrix(layer_name(l, "attn_v"), kv_width, hidden);
    matrix(layer_name(l, "attn_output"), hidden, query_width);
    norm(layer_name(l, "attn_q_norm"), config.head_dim);
    norm(layer_name(l, "attn_k_norm"), config.head_dim);
    norm(layer_name(l, "ffn_norm"), hidden);
    matrix(layer_name(l, "ffn_gate"), config.feed_forward, hidden);
    matrix(layer_name(l, "ffn_up"), config.feed_forward, hidden);
    matrix(layer_name(l, "ffn_down"), hidden, config.feed_forward);
  }
  return parameters;
}

}  // namespace octet::train
