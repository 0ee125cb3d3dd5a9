#include "octet/models/dflash/weights.h"

#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet {
namespace {

std::string layer_name(size_t layer, std::string_view part) {
  return fmt::format("blk.{}.{}.weight", layer, part);
}

DFlashLayer load_layer(WeightLoader& loader, const DFlashConfig& config, size_t l) {
  const int64_t hidden = config.hidden;
  const int64_t query_width = int64_t{config.heads} * config.head_dim;
  const int64_t kv_width = int64_t{config.kv_heads} * config.head_dim;
  DFlashLayer layer;
  layer.attention_norm = loader.vector(layer_name(l, "attn_norm"), hidden);
  layer.query = loader.matrix(layer_name(l, "attn_q"), query_width, hidden);
  layer.key = loader.matrix(layer_name(l, "attn_k"), kv_width, hidden);
  layer.value = loader.matrix(layer_name(l, "attn_v"), kv_width, hidden);
  layer.query_norm = loader.vector(layer_name(l, "attn_q_norm"), config.head_dim);
  layer.key_norm = loader.vector(layer_name(l, "attn_k_norm"), config.head_dim);
  layer.output = loader.matrix(layer_name(l, "attn_output"), hidden, query_width);
  layer.mlp_norm = loader.vector(layer_name(l, "ffn_norm"), hidden);
  layer.gate = loader.matrix(layer_name(l, "ffn_gate"), config.feed_forward, hidden);
  layer.up = loader.matrix(layer_name(l, "ffn_up"), config.feed_forward, hidden);
  layer.down = loader.matrix(layer_name(l, "ffn_down"), hidden, config.feed_forward);
  return layer;
}

void refuse_unknown_tensors(const Checkpoint& checkpoint, const DFlashConfig& config) {
  std::set<std::string, std::less<>> known = {
      "fc.weight",
      "enc.output_norm.weight",
      "output_norm.weight",
      "output.weight",
  };
  for (size_t l = 0; l < config.layers.size(); ++l) {
    for (const std::string_view part :
         {"attn_norm",
          "attn_q",
          "attn_k",
          "attn_v",
          "attn_q_norm",
          "attn_k_norm",
          "attn_output",
          "ffn_norm",
          "ffn_gate",
          "ffn_up",
          "ffn_down"}) {
      known.insert(layer_name(l, part));
    }
  }
  for (const LogicalTensor& tensor : checkpoint.tensors()) {
    if (known.count(tensor.name) == 0) {
      throw Error(
          ErrorKind::kUnsupported,
          fmt::format(
              "{}: tensor {} is not part of plain DFlash; expected fc, two norms and {} layers",
              checkpoint.path,
              tensor.name,
              config.layers.size()
          )
      );
    }
  }
}

}  // namespace

DFlashWeights load_dflash_weights(WeightLoader& loader, const DFlashConfig& config, bool own_head) {
  refuse_unknown_tensors(loader.checkpoint(), config);
  const auto taps = static_cast<int64_t>(config.taps.size());
  DFlashWeights weights;
  weights.fusion = loader.matrix("fc.weight", config.hidden, taps * config.hidden);
  weights.fusion_norm = loader.vector("enc.output_norm.weight", config.hidden);
  for (size_t l = 0; l < config.layers.size(); ++l) {
    weights.layers.push_back(load_layer(loader, config, l));
  }
  weights.output_norm = loader.vector("output_norm.weight", config.hidden);
  if (own_head) {
    weights.head = loader.matrix("output.weight", *config.own_vocabulary, config.hidden);
  }
  loader.finish();
  return weights;
}

}  // namespace octet
