// Whole random gemma4 targets and dflash drafters as checkpoints in memory, small enough that a
// naive forward pass is quick, with every structural variety that the real files have.
// Deterministic by seed. Not trained: drafts are practically never accepted. Weights are scaled so
// that the net is not chaotic and logits have a standard deviation of a few units.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "octet/tensor/checkpoint.h"
#include "support/random_checkpoint.h"

namespace octet::test {

struct GemmaShape {
  int64_t hidden = 32;
  int64_t vocabulary = 64;
  int64_t context_length = 4096;
  int64_t window = 8;
  int64_t ple_width = 8;  // 0: no per-layer embeddings
  int64_t ple_vocabulary = 64;
  int64_t heads = 4;
  int64_t full_head_dim = 16;
  int64_t sliding_head_dim = 8;
  int64_t shared_layers = 2;
  std::vector<bool> sliding = {true, false, true, false};  // one a layer
  std::vector<int64_t> kv_heads = {2, 2, 2, 2};            // one a layer
  std::vector<int64_t> feed_forward = {48, 48, 48, 48};    // one a layer
  bool own_head = false;
  bool layer_scalars = true;
  bool rope_divisors = true;     // false: the file leaves them out
  bool dead_kv_tensors = false;  // shared layers hold K/V weights that nobody may read
  bool arrays = false;           // one value a layer is written as an array even when all are equal
  double softcap = 30.0;         // 0: none
  DType dtype = DType::kF32;     // of matrices and tables whose rows allow it, else Q8_0, else F32
};

struct DFlashShape {
  int64_t hidden = 32;
  int64_t vocabulary = 64;
  int64_t heads = 4;
  int64_t kv_heads = 2;
  int64_t head_dim = 8;
  int64_t feed_forward = 48;
  int64_t window = 16;  // 0: no layer has one
  int64_t block = 8;
  int64_t mask_token = 4;
  std::vector<bool> windowed = {true, true};  // one a layer
  std::vector<bool> causal = {false, false};  // one a layer
  std::vector<int64_t> taps = {0, 2};         // zero-based target layers
  double embedding_scale = 0.0;               // 0: the file does not say
  bool own_head = false;
  DType dtype = DType::kF32;
};

/// Adds weights one after the other, each with a seed of its own.
class ModelWriter {
 public:
  ModelWriter(std::string path, uint64_t seed, DType dtype)
      : checkpoint_(std::make_shared<Checkpoint>()), seed_(seed), dtype_(dtype) {
    checkpoint_->path = std::move(path);
  }

  template <typename T>
  void set(const std::string& key, T value) {
    checkpoint_->metadata.set(key, MetadataValue(std::move(value)));
  }
  void set_u32(const std::string& key, int64_t value) { set(key, static_cast<uint32_t>(value)); }
  void set_f32(const std::string& key, double value) { set(key, static_cast<float>(value)); }

  template <typename T>
  void set_array(const std::string& key, std::vector<T> values) {
    set(key, MetadataArray(std::move(values)));
  }
  void set_u32_array(const std::string& key, const std::vector<int64_t>& values) {
    std::vector<uint32_t> narrow;
    for (const int64_t value : values) {
      narrow.push_back(static_cast<uint32_t>(value));
    }
    set_array(key, std::move(narrow));
  }

  /// Normal with variance 1 / cols.
  void matrix(const std::string& name, int64_t rows, int64_t cols) {
    const auto deviation = static_cast<float>(1.0 / std::sqrt(static_cast<double>(cols)));
    DType dtype = dtype_;
    if (cols % dtype_facts(dtype).block_values != 0) {
      dtype = cols % 32 == 0 ? DType::kQ8_0 : DType::kF32;
    }
    add_tensor(*checkpoint_, random_tensor(name, dtype, {rows, cols}, next_seed(), deviation));
  }

  /// Around `mean`, a tenth of it wide.
  void vector(const std::string& name, int64_t size, double mean) {
    std::vector<float> values = random_values(size, next_seed(), 0.1F);
    for (float& value : values) {
      value = static_cast<float>(mean) * (1.0F + value);
    }
    add_tensor(*checkpoint_, encoded_tensor(name, DType::kF32, {size}, values));
  }

  void values(const std::string& name, const std::vector<float>& values) {
    const auto size = static_cast<int64_t>(values.size());
    add_tensor(*checkpoint_, encoded_tensor(name, DType::kF32, {size}, values));
  }

  std::shared_ptr<Checkpoint> take() { return std::move(checkpoint_); }

 private:
  uint64_t next_seed() { return seed_ * 1'000'003 + ++count_; }

  std::shared_ptr<Checkpoint> checkpoint_;
  uint64_t seed_;
  uint64_t count_ = 0;
  DType dtype_;
};

inline void write_gemma_keys(ModelWriter& writer, const GemmaShape& shape) {
  const auto layers = static_cast<int64_t>(shape.sliding.size());
  writer.set("general.architecture", std::string("gemma4"));
  writer.set_u32("gemma4.block_count", layers);
  writer.set_u32("gemma4.context_length", shape.context_length);
  writer.set_u32("gemma4.embedding_length", shape.hidden);
  writer.set_u32("gemma4.attention.head_count", shape.heads);
  const auto per_layer = [&](const std::string& key, const std::vector<int64_t>& values) {
    bool equal = true;
    for (const int64_t value : values) {
      equal = equal && value == values[0];
    }
    if (equal && !shape.arrays) {
      writer.set_u32(key, values[0]);
    } else {
      writer.set_u32_array(key, values);
    }
  };
  per_layer("gemma4.attention.head_count_kv", shape.kv_heads);
  per_layer("gemma4.feed_forward_length", shape.feed_forward);
  writer.set_u32("gemma4.attention.key_length", shape.full_head_dim);
  writer.set_u32("gemma4.attention.value_length", shape.full_head_dim);
  writer.set_u32("gemma4.attention.key_length_swa", shape.sliding_head_dim);
  writer.set_u32("gemma4.attention.value_length_swa", shape.sliding_head_dim);
  writer.set_f32("gemma4.attention.layer_norm_rms_epsilon", 1e-6);
  writer.set_u32("gemma4.attention.sliding_window", shape.window);
  writer.set_array("gemma4.attention.sliding_window_pattern", shape.sliding);
  writer.set_u32("gemma4.attention.shared_kv_layers", shape.shared_layers);
  writer.set_u32("gemma4.embedding_length_per_layer_input", shape.ple_width);
  writer.set_u32("gemma4.rope.dimension_count", shape.full_head_dim);
  writer.set_u32("gemma4.rope.dimension_count_swa", shape.sliding_head_dim);
  writer.set_f32("gemma4.rope.freq_base", 1e6);
  writer.set_f32("gemma4.rope.freq_base_swa", 1e4);
  if (shape.softcap > 0.0) {
    writer.set_f32("gemma4.final_logit_softcapping", shape.softcap);
  }
}

inline void write_gemma_layer(ModelWriter& writer, const GemmaShape& shape, size_t l) {
  const auto layers = static_cast<int64_t>(shape.sliding.size());
  const int64_t head_dim = shape.sliding[l] ? shape.sliding_head_dim : shape.full_head_dim;
  const int64_t query_width = shape.heads * head_dim;
  const int64_t kv_width = shape.kv_heads[l] * head_dim;
  const bool owns_kv = static_cast<int64_t>(l) < layers - shape.shared_layers;
  const double head_norm = std::pow(static_cast<double>(head_dim), -0.25);
  const auto name = [&](const char* part) { return fmt::format("blk.{}.{}.weight", l, part); };
  writer.vector(name("attn_norm"), shape.hidden, 1.0);
  writer.matrix(name("attn_q"), query_width, shape.hidden);
  if (owns_kv || shape.dead_kv_tensors) {
    writer.matrix(name("attn_k"), kv_width, shape.hidden);
    writer.matrix(name("attn_v"), kv_width, shape.hidden);
    writer.vector(name("attn_k_norm"), head_dim, head_norm);
  }
  writer.vector(name("attn_q_norm"), head_dim, head_norm);
  writer.matrix(name("attn_output"), shape.hidden, query_width);
  writer.vector(name("post_attention_norm"), shape.hidden, 0.4);
  writer.vector(name("ffn_norm"), shape.hidden, 1.0);
  writer.matrix(name("ffn_gate"), shape.feed_forward[l], shape.hidden);
  writer.matrix(name("ffn_up"), shape.feed_forward[l], shape.hidden);
  writer.matrix(name("ffn_down"), shape.hidden, shape.feed_forward[l]);
  writer.vector(name("post_ffw_norm"), shape.hidden, 0.4);
  if (shape.ple_width > 0) {
    writer.matrix(name("inp_gate"), shape.ple_width, shape.hidden);
    writer.matrix(name("proj"), shape.hidden, shape.ple_width);
    writer.vector(name("post_norm"), shape.hidden, 0.3);
  }
  if (shape.layer_scalars) {
    writer.vector(name("layer_output_scale"), 1, 0.9);
  }
}

inline std::shared_ptr<Checkpoint> make_gemma(const GemmaShape& shape, uint64_t seed) {
  const auto layers = static_cast<int64_t>(shape.sliding.size());
  ModelWriter writer("random-target", seed, shape.dtype);
  write_gemma_keys(writer, shape);
  writer.matrix("token_embd.weight", shape.vocabulary, shape.hidden);
  if (shape.ple_width > 0) {
    const int64_t width = layers * shape.ple_width;
    writer.matrix("per_layer_token_embd.weight", shape.ple_vocabulary, width);
    writer.matrix("per_layer_model_proj.weight", width, shape.hidden);
    writer.vector("per_layer_proj_norm.weight", shape.ple_width, 1.0);
  }
  writer.vector("output_norm.weight", shape.hidden, 4.0);
  if (shape.rope_divisors) {
    const auto pairs = static_cast<size_t>(shape.full_head_dim / 2);
    std::vector<float> divisors(pairs, 1e30F);
    for (size_t i = 0; i < (pairs + 3) / 4; ++i) {
      divisors[i] = 1.0F;
    }
    writer.values("rope_freqs.weight", divisors);
  }
  if (shape.own_head) {
    writer.matrix("output.weight", shape.vocabulary, shape.hidden);
  }
  for (size_t l = 0; l < shape.sliding.size(); ++l) {
    write_gemma_layer(writer, shape, l);
  }
  return writer.take();
}

inline std::shared_ptr<Checkpoint> make_dflash(const DFlashShape& shape, uint64_t seed) {
  ModelWriter writer("random-drafter", seed, shape.dtype);
  writer.set("general.architecture", std::string("dflash"));
  writer.set_u32("dflash.block_count", static_cast<int64_t>(shape.windowed.size()));
  writer.set_u32("dflash.context_length", 4096);
  writer.set_u32("dflash.embedding_length", shape.hidden);
  writer.set_u32("dflash.vocab_size", shape.vocabulary);
  writer.set_u32("dflash.feed_forward_length", shape.feed_forward);
  writer.set_u32("dflash.attention.head_count", shape.heads);
  writer.set_u32("dflash.attention.head_count_kv", shape.kv_heads);
  writer.set_u32("dflash.attention.key_length", shape.head_dim);
  writer.set_u32("dflash.attention.value_length", shape.head_dim);
  writer.set_f32("dflash.attention.layer_norm_rms_epsilon", 1e-6);
  writer.set_f32("dflash.rope.freq_base", 1e6);
  writer.set_u32("dflash.attention.sliding_window", shape.window);
  writer.set_array("dflash.attention.sliding_window_pattern", shape.windowed);
  writer.set_array("dflash.attention.causal_pattern", shape.causal);
  writer.set_u32("dflash.block_size", shape.block);
  writer.set_u32("dflash.mask_token_id", shape.mask_token);
  writer.set_u32_array("dflash.target_layer_ids", shape.taps);
  if (shape.embedding_scale > 0.0) {
    writer.set_f32("dflash.embedding_scale", shape.embedding_scale);
  }
  const int64_t query_width = shape.heads * shape.head_dim;
  const int64_t kv_width = shape.kv_heads * shape.head_dim;
  const auto taps = static_cast<int64_t>(shape.taps.size());
  writer.matrix("fc.weight", shape.hidden, taps * shape.hidden);
  writer.vector("enc.output_norm.weight", shape.hidden, 1.0);
  writer.vector("output_norm.weight", shape.hidden, 4.0);
  if (shape.own_head) {
    writer.matrix("output.weight", shape.vocabulary, shape.hidden);
  }
  for (size_t l = 0; l < shape.windowed.size(); ++l) {
    const auto name = [&](const char* part) { return fmt::format("blk.{}.{}.weight", l, part); };
    writer.vector(name("attn_norm"), shape.hidden, 1.0);
    writer.matrix(name("attn_q"), query_width, shape.hidden);
    writer.matrix(name("attn_k"), kv_width, shape.hidden);
    writer.matrix(name("attn_v"), kv_width, shape.hidden);
    writer.vector(name("attn_q_norm"), shape.head_dim, 1.0);
    writer.vector(name("attn_k_norm"), shape.head_dim, 1.0);
    writer.matrix(name("attn_output"), shape.hidden, query_width);
    writer.vector(name("ffn_norm"), shape.hidden, 1.0);
    writer.matrix(name("ffn_gate"), shape.feed_forward, shape.hidden);
    writer.matrix(name("ffn_up"), shape.feed_forward, shape.hidden);
    writer.matrix(name("ffn_down"), shape.hidden, shape.feed_forward);
  }
  return writer.take();
}

/// Hyperparameters of every kind: E4B-like, E2B-like (arrays, one K/V head, wider tail), no shared
/// layers, no per-layer embeddings, own head, odd periods.
inline GemmaShape random_gemma_shape(uint64_t seed) {
  RandomNumbers random(seed);
  GemmaShape shape;
  const int64_t layers = random.integer(2, 7);
  shape.hidden = 16 * random.integer(1, 4);
  shape.vocabulary = random.integer(24, 90);
  shape.window = random.integer(1, 24);
  shape.ple_width = random.integer(0, 3) == 0 ? 0 : 4 * random.integer(1, 4);
  shape.ple_vocabulary = random.integer(0, 1) == 0 ? shape.vocabulary : shape.vocabulary - 7;
  const int64_t kv_heads = int64_t{1} << random.integer(0, 2);
  shape.heads = kv_heads * (int64_t{1} << random.integer(0, 2));
  shape.full_head_dim = 8 * random.integer(1, 4);
  shape.sliding_head_dim = 4 * random.integer(1, 6);
  shape.sliding.assign(static_cast<size_t>(layers), true);
  const int64_t period = random.integer(2, 3);
  for (int64_t l = 0; l < layers; ++l) {
    shape.sliding[static_cast<size_t>(l)] = l % period != period - 1;
  }
  // Every kind that the shared layers need must have an owner.
  shape.shared_layers = layers > period ? random.integer(0, layers - period) : 0;
  shape.kv_heads.assign(static_cast<size_t>(layers), kv_heads);
  if (random.integer(0, 2) == 0) {
    for (size_t l = 0; l < shape.sliding.size(); ++l) {
      shape.kv_heads[l] = shape.sliding[l] ? kv_heads : shape.heads;
    }
  }
  shape.feed_forward.assign(static_cast<size_t>(layers), 8 * random.integer(2, 9));
  if (random.integer(0, 1) == 0) {
    for (size_t l = static_cast<size_t>(layers - shape.shared_layers); l < shape.sliding.size();
         ++l) {
      shape.feed_forward[l] *= 2;
    }
  }
  shape.own_head = random.integer(0, 2) == 0;
  shape.layer_scalars = random.integer(0, 3) != 0;
  shape.rope_divisors = random.integer(0, 3) != 0;
  shape.dead_kv_tensors = random.integer(0, 2) == 0;
  shape.arrays = random.integer(0, 1) == 0;
  shape.softcap = random.integer(0, 3) == 0 ? 0.0 : 30.0;
  return shape;
}

/// A drafter that fits the target.
inline DFlashShape random_dflash_shape(const GemmaShape& target, uint64_t seed) {
  RandomNumbers random(seed);
  DFlashShape shape;
  const auto target_layers = static_cast<int64_t>(target.sliding.size());
  const auto layers = static_cast<size_t>(random.integer(1, 3));
  shape.hidden = target.hidden;
  shape.vocabulary = target.vocabulary;
  shape.kv_heads = int64_t{1} << random.integer(0, 1);
  shape.heads = shape.kv_heads * (int64_t{1} << random.integer(0, 2));
  shape.head_dim = 4 * random.integer(1, 5);
  shape.feed_forward = 8 * random.integer(2, 8);
  shape.block = random.integer(0, 2) == 0 ? random.integer(9, 20) : random.integer(2, 8);
  shape.window = random.integer(shape.block, 80);
  shape.windowed.assign(layers, true);
  shape.causal.assign(layers, false);
  for (size_t l = 0; l < layers; ++l) {
    shape.windowed[l] = random.integer(0, 3) != 0;
    shape.causal[l] = random.integer(0, 2) == 0;
  }
  shape.taps.clear();
  const int64_t taps = random.integer(1, 3);
  for (int64_t t = 0; t < taps; ++t) {
    shape.taps.push_back(random.integer(0, target_layers - 1));
  }
  shape.mask_token = random.integer(0, target.vocabulary - 1);
  shape.embedding_scale = random.integer(0, 1) == 0 ? 0.0 : 5.5;
  shape.own_head = random.integer(0, 1) == 0;
  return shape;
}

inline std::vector<int32_t> random_tokens(int64_t count, int64_t vocabulary, uint64_t seed) {
  RandomNumbers random(seed);
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int32_t>(random.integer(0, vocabulary - 1)));
  }
  return tokens;
}

}  // namespace octet::test
