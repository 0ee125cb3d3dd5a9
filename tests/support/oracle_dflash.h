// The DFlash drafter as a naive float64 forward pass: context of any length from features, dense
// masks, no ring, hyperparameters read from the metadata by itself.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "octet/base/token.h"
#include "octet/tensor/checkpoint.h"
#include "support/oracle_math.h"

namespace octet::test::oracle {

struct DFlashInput {
  Matrix features;         // [positions][taps * D], positions 0..n-1
  int64_t valid_from = 0;  // context before is not visible
  TokenId anchor = 0;      // at position n
  double embedding_scale = 1.0;
};

class DFlash {
 public:
  DFlash(const Checkpoint& drafter, const Checkpoint& target) : drafter_(drafter), target_(target) {
    const Metadata& meta = drafter.metadata;
    eps_ = meta.number("dflash.attention.layer_norm_rms_epsilon");
    base_ = meta.number("dflash.rope.freq_base");
    head_dim_ = static_cast<size_t>(meta.integer("dflash.attention.key_length"));
    layers_ = meta.integer("dflash.block_count");
    block_ = meta.integer("dflash.block_size");
    mask_ = static_cast<TokenId>(meta.integer("dflash.mask_token_id"));
    window_ = meta.integer("dflash.attention.sliding_window");
    windowed_ = *meta.find_integers("dflash.attention.sliding_window_pattern");
    causal_ = *meta.find_integers("dflash.attention.causal_pattern");
  }

  Matrix fuse(const Matrix& features) const {
    const Matrix fc = matrix(drafter_, "fc.weight");
    const Vector norm = vector(drafter_, "enc.output_norm.weight");
    Matrix out;
    for (const Vector& row : features) {
      out.push_back(rms(product(fc, row), norm, eps_));
    }
    return out;
  }

  /// Draft logits of rows 1..block-1.
  Matrix draft(const DFlashInput& input) const {
    const Matrix embedding = matrix(target_, "token_embd.weight");
    const auto n = static_cast<int64_t>(input.features.size());
    const Matrix context = fuse(input.features);
    Matrix h;
    for (int64_t j = 0; j < block_; ++j) {
      Vector row = embedding[static_cast<size_t>(j == 0 ? input.anchor : mask_)];
      for (double& value : row) {
        value *= input.embedding_scale;
      }
      h.push_back(row);
    }
    for (int64_t l = 0; l < layers_; ++l) {
      layer(l, n, input.valid_from, context, h);
    }
    return logits(h, embedding);
  }

 private:
  Vector norm(int64_t l, const char* part) const {
    return vector(drafter_, "blk." + std::to_string(l) + "." + part + ".weight");
  }
  Matrix weight(int64_t l, const char* part) const {
    return matrix(drafter_, "blk." + std::to_string(l) + "." + part + ".weight");
  }

  void rotate(Vector& x, int64_t position) const {
    rotate_heads(x, head_dim_, position, [&](size_t i) {
      return std::pow(base_, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim_));
    });
  }

  bool visible(int64_t l, int64_t n, int64_t valid_from, int64_t query, int64_t key) const {
    const auto index = static_cast<size_t>(l);
    if (key < n) {
      return key >= valid_from && (windowed_[index] == 0 || query - key < window_);
    }
    return causal_[index] == 0 || key <= query;
  }

  void layer(int64_t l, int64_t n, int64_t valid_from, const Matrix& context, Matrix& h) const {
    const Vector input_norm = norm(l, "attn_norm");
    const Vector q_norm = norm(l, "attn_q_norm");
    const Vector k_norm = norm(l, "attn_k_norm");
    const Matrix wk = weight(l, "attn_k");
    const Matrix wv = weight(l, "attn_v");
    std::vector<Vector> keys;
    std::vector<Vector> values;
    for (int64_t p = 0; p < n + block_; ++p) {
      const Vector source = p < n ? context[static_cast<size_t>(p)]
                                  : rms(h[static_cast<size_t>(p - n)], input_norm, eps_);
      Vector k = product(wk, source);
      rms_heads(k, head_dim_, k_norm, eps_);
      rotate(k, p);
      keys.push_back(k);
      values.push_back(product(wv, source));
    }
    const Matrix wq = weight(l, "attn_q");
    const Matrix wo = weight(l, "attn_output");
    const Matrix gate = weight(l, "ffn_gate");
    const Matrix up = weight(l, "ffn_up");
    const Matrix down = weight(l, "ffn_down");
    const Vector mlp_norm = norm(l, "ffn_norm");
    for (int64_t j = 0; j < block_; ++j) {
      Vector& row = h[static_cast<size_t>(j)];
      Vector q = product(wq, rms(row, input_norm, eps_));
      rms_heads(q, head_dim_, q_norm, eps_);
      rotate(q, n + j);
      const auto sees = [&](size_t key) {
        return visible(l, n, valid_from, n + j, static_cast<int64_t>(key));
      };
      const double scale = 1.0 / std::sqrt(static_cast<double>(head_dim_));
      add(row, product(wo, attend(q, keys, values, sees, head_dim_, scale)));
      const Vector y = rms(row, mlp_norm, eps_);
      add(row, product(down, gated(product(gate, y), product(up, y), silu)));
    }
  }

  Matrix logits(const Matrix& h, const Matrix& embedding) const {
    const bool own_head = drafter_.find("output.weight") != nullptr;
    const bool target_head = target_.find("output.weight") != nullptr;
    const Matrix head = own_head      ? matrix(drafter_, "output.weight")
                        : target_head ? matrix(target_, "output.weight")
                                      : embedding;
    const Vector output_norm = vector(drafter_, "output_norm.weight");
    Matrix out;
    for (size_t j = 1; j < h.size(); ++j) {
      out.push_back(product(head, rms(h[j], output_norm, eps_)));
    }
    return out;
  }

  const Checkpoint& drafter_;
  const Checkpoint& target_;
  double eps_ = 0.0;
  double base_ = 0.0;
  size_t head_dim_ = 0;
  int64_t layers_ = 0;
  int64_t block_ = 0;
  int64_t window_ = 0;
  TokenId mask_ = 0;
  std::vector<int64_t> windowed_;
  std::vector<int64_t> causal_;
};

}  // namespace octet::test::oracle
