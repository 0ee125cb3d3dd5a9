// The gemma4 target as a naive float64 forward pass over a whole sequence: dense masks, no cache,
// no skipping, hyperparameters read from the metadata by itself.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "octet/base/token.h"
#include "octet/tensor/checkpoint.h"
#include "support/oracle_math.h"

namespace octet::test::oracle {

struct GemmaResult {
  std::vector<Matrix> layer_outputs;  // [layer][row][D]
  Matrix logits;                      // [row][V]
};

class Gemma {
 public:
  explicit Gemma(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {
    const Metadata& meta = checkpoint.metadata;
    layers_ = meta.integer("gemma4.block_count");
    eps_ = meta.number("gemma4.attention.layer_norm_rms_epsilon");
    window_ = meta.integer("gemma4.attention.sliding_window");
    sliding_ = *meta.find_integers("gemma4.attention.sliding_window_pattern");
    shared_ = meta.find_integer("gemma4.attention.shared_kv_layers").value_or(0);
    ple_ =
        static_cast<size_t>(meta.find_integer("gemma4.embedding_length_per_layer_input").value_or(0)
        );
    softcap_ = meta.find_number("gemma4.final_logit_softcapping").value_or(0.0);
  }

  GemmaResult run(const std::vector<TokenId>& tokens) {
    const Matrix embedding = matrix(checkpoint_, "token_embd.weight");
    const double hidden = static_cast<double>(embedding[0].size());
    Matrix x;
    for (const TokenId token : tokens) {
      Vector row = embedding[static_cast<size_t>(token)];
      for (double& value : row) {
        value *= std::sqrt(hidden);
      }
      x.push_back(row);
    }
    const std::vector<Vector> u = ple_inputs(tokens, x);
    GemmaResult result;
    keys_.assign(static_cast<size_t>(layers_), {});
    values_.assign(static_cast<size_t>(layers_), {});
    for (int64_t l = 0; l < layers_; ++l) {
      attention(l, x);
      for (size_t r = 0; r < x.size(); ++r) {
        mlp_and_ple(l, x[r], u.empty() ? Vector() : u[r]);
      }
      result.layer_outputs.push_back(x);
    }
    const bool own_head = checkpoint_.find("output.weight") != nullptr;
    const Matrix head = own_head ? matrix(checkpoint_, "output.weight") : embedding;
    const Vector norm = vector(checkpoint_, "output_norm.weight");
    for (const Vector& row : x) {
      Vector logits = product(head, rms(row, norm, eps_));
      for (double& z : logits) {
        z = softcap_ > 0.0 ? softcap_ * std::tanh(z / softcap_) : z;
      }
      result.logits.push_back(logits);
    }
    return result;
  }

 private:
  Vector norm(int64_t l, const char* part) const {
    return vector(checkpoint_, "blk." + std::to_string(l) + "." + part + ".weight");
  }
  Matrix weight(int64_t l, const char* part) const {
    return matrix(checkpoint_, "blk." + std::to_string(l) + "." + part + ".weight");
  }
  bool sliding(int64_t l) const { return sliding_[static_cast<size_t>(l)] != 0; }
  bool owns(int64_t l) const { return l < layers_ - shared_; }

  /// [row][L * P]
  std::vector<Vector> ple_inputs(const std::vector<TokenId>& tokens, const Matrix& x) const {
    std::vector<Vector> out;
    if (ple_ == 0) {
      return out;
    }
    const Matrix table = matrix(checkpoint_, "per_layer_token_embd.weight");
    const Matrix projection = matrix(checkpoint_, "per_layer_model_proj.weight");
    const Vector weight = vector(checkpoint_, "per_layer_proj_norm.weight");
    for (size_t r = 0; r < tokens.size(); ++r) {
      Vector context = product(projection, x[r]);
      for (double& value : context) {
        value /= std::sqrt(static_cast<double>(x[r].size()));
      }
      rms_heads(context, ple_, weight, eps_);
      const auto id = static_cast<size_t>(tokens[r]);
      const Vector& identity = id < table.size() ? table[id] : table[0];
      for (size_t i = 0; i < context.size(); ++i) {
        context[i] += identity[i] * std::sqrt(static_cast<double>(ple_));
        context[i] /= std::sqrt(2.0);
      }
      out.push_back(context);
    }
    return out;
  }

  double frequency(int64_t l, size_t head_dim, size_t i) const {
    const char* key = sliding(l) ? "gemma4.rope.freq_base_swa" : "gemma4.rope.freq_base";
    const double base = checkpoint_.metadata.number(key);
    const double plain =
        std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
    if (sliding(l)) {
      return plain;
    }
    if (checkpoint_.find("rope_freqs.weight") == nullptr) {
      return i < head_dim / 8 ? plain : 0.0;
    }
    return plain / vector(checkpoint_, "rope_freqs.weight")[i];
  }

  void attention(int64_t l, Matrix& x) {
    const Vector q_norm = norm(l, "attn_q_norm");
    const size_t head_dim = q_norm.size();
    const auto turn = [&](size_t i) { return frequency(l, head_dim, i); };
    const Vector input_norm = norm(l, "attn_norm");
    if (owns(l)) {
      const Matrix wk = weight(l, "attn_k");
      const Matrix wv = weight(l, "attn_v");
      const Vector k_norm = norm(l, "attn_k_norm");
      for (size_t r = 0; r < x.size(); ++r) {
        const Vector s = rms(x[r], input_norm, eps_);
        Vector k = product(wk, s);
        rms_heads(k, head_dim, k_norm, eps_);
        rotate_heads(k, head_dim, static_cast<int64_t>(r), turn);
        Vector v = product(wv, s);
        rms_heads(v, head_dim, {}, eps_);
        keys_[static_cast<size_t>(l)].push_back(k);
        values_[static_cast<size_t>(l)].push_back(v);
      }
    }
    int64_t donor = l;
    while (!owns(donor) || sliding(donor) != sliding(l)) {
      --donor;
    }
    const Matrix wq = weight(l, "attn_q");
    const Matrix wo = weight(l, "attn_output");
    const Vector post_norm = norm(l, "post_attention_norm");
    for (size_t r = 0; r < x.size(); ++r) {
      Vector q = product(wq, rms(x[r], input_norm, eps_));
      rms_heads(q, head_dim, q_norm, eps_);
      rotate_heads(q, head_dim, static_cast<int64_t>(r), turn);
      const auto visible = [&](size_t t) {
        return t <= r && (!sliding(l) || static_cast<int64_t>(r - t) < window_);
      };
      const auto d = static_cast<size_t>(donor);
      const Vector o = attend(q, keys_[d], values_[d], visible, head_dim, 1.0);
      add(x[r], rms(product(wo, o), post_norm, eps_));
    }
  }

  void mlp_and_ple(int64_t l, Vector& x, const Vector& u) const {
    const Vector m = rms(x, norm(l, "ffn_norm"), eps_);
    const Vector inner =
        gated(product(weight(l, "ffn_gate"), m), product(weight(l, "ffn_up"), m), gelu_tanh);
    add(x, rms(product(weight(l, "ffn_down"), inner), norm(l, "post_ffw_norm"), eps_));
    if (ple_ > 0) {
      const auto begin = u.begin() + l * static_cast<int64_t>(ple_);
      const Vector u_l(begin, begin + static_cast<int64_t>(ple_));
      const Vector b = gated(product(weight(l, "inp_gate"), x), u_l, gelu_tanh);
      add(x, rms(product(weight(l, "proj"), b), norm(l, "post_norm"), eps_));
    }
    if (checkpoint_.find("blk." + std::to_string(l) + ".layer_output_scale.weight") != nullptr) {
      const double scale = norm(l, "layer_output_scale")[0];
      for (double& value : x) {
        value *= scale;
      }
    }
  }

  const Checkpoint& checkpoint_;
  int64_t layers_ = 0;
  int64_t shared_ = 0;
  int64_t window_ = 0;
  size_t ple_ = 0;
  double eps_ = 0.0;
  double softcap_ = 0.0;
  std::vector<int64_t> sliding_;
  std::vector<std::vector<Vector>> keys_;    // [layer][row]
  std::vector<std::vector<Vector>> values_;  // [layer][row]
};

}  // namespace octet::test::oracle
