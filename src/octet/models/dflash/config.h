// Hyperparameters of a DFlash drafter, read once from canonical metadata, and the check that it
// fits its target.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/token.h"
#include "octet/models/target_model.h"
#include "octet/tensor/checkpoint.h"

namespace octet {

struct DFlashLayerConfig {
  int64_t window = 0;   // a key is seen when query position - key position < window; 0: all
  bool causal = false;  // rows of a block see only themselves and rows before, else the whole block
};

struct DFlashConfig {
  int64_t hidden = 0;        // D, equal to the target's
  int heads = 0;             // H
  int kv_heads = 0;          // K
  int head_dim = 0;          // d, all of it rotated
  int64_t feed_forward = 0;  // F
  float norm_epsilon = 0.0F;
  float attention_scale = 0.0F;  // d^-1/2
  double rope_base = 0.0;
  int block = 0;  // rows of a block: the anchor and block - 1 masks
  TokenId mask_token = 0;
  std::vector<int> taps;                  // zero-based target layers, in the order of the features
  std::optional<float> embedding_scale;   // what the file says about it
  std::optional<float> final_softcap;     // likewise, of the draft logits; 0: none
  std::optional<int64_t> own_vocabulary;  // rows of the drafter's own head, if it has one
  std::optional<int64_t> stated_vocabulary;  // what the file says without one
  std::optional<int64_t> stated_target_layers;
  std::vector<DFlashLayerConfig> layers;

  /// Context positions that a row can see, over all layers; 0: all.
  int64_t context_window() const;
};

/// Throws Error naming the file and the key that is missing, impossible or not supported.
DFlashConfig read_dflash_config(const Checkpoint& checkpoint);

struct PairCheck {
  std::string what;
  std::string expected;
  std::string found;
  bool fits = false;
};

/// What hyperparameters say about the pair, each with what the target expects and the drafter has.
std::vector<PairCheck> pair_checks(const TargetShape& target, const DFlashConfig& drafter);

/// Throws Error(kMismatch) for the first of the checks that does not fit.
void require_fit(std::span<const PairCheck> checks, std::string_view drafter_path);

/// Both: throws when hidden size, head, vocabulary, mask token or taps do not fit the target.
void check_pair(
    const TargetShape& target, const DFlashConfig& drafter, std::string_view drafter_path
);

}  // namespace octet
