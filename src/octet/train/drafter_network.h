// The DFlash drafter as a differentiable function: context features and anchors in, the states that
// the head scores out. The formula is that of models/dflash/forward.h (dflash.md section 3), over
// many blocks of many sequences at once; the tests hold the two against each other. Not for losses
// (head_loss.h). Invariant: a block sees the context before its anchor and itself, never another
// block and never the features at or behind its anchor.
#pragma once

#include <cstdint>

#include "octet/models/dflash/config.h"
#include "octet/train/operations.h"
#include "octet/train/parameters.h"
#include "octet/train/tensor.h"

namespace octet::train {

/// The blocks of a batch. Features of all sequences lie one after another; a block's context are
/// the rows right before `anchor_rows`, so many of them as its sequence has.
struct DraftBlocks {
  Tensor features;           // [rows, taps * hidden]
  Tensor feature_positions;  // [rows], int64
  Tensor anchor_tokens;      // [blocks], int64
  Tensor anchor_rows;        // [blocks], int64: where the anchor's own features are or would be
  Tensor anchor_positions;   // [blocks], int64: also the number of its context rows

  int64_t blocks() const { return anchor_tokens.size(0); }
};

class DrafterNetwork {
 public:
  /// `embedding` [vocabulary, hidden] is the target's and stays as it is; blocks read its rows
  /// times `embedding_scale`.
  DrafterNetwork(
      DFlashConfig config, Tensor embedding, double embedding_scale, Precision precision
  );

  const DFlashConfig& config() const { return config_; }

  /// rms(h; norm) of the mask rows: [blocks * (block - 1), hidden]. Row k of a block is for the
  /// token k + 1 places behind its anchor.
  Tensor states(const Parameters& parameters, const DraftBlocks& blocks) const;

 private:
  struct Batch;
  struct Context;

  Tensor fused(const Parameters& parameters, const Tensor& features) const;
  Tensor attention(const Parameters& parameters, size_t layer, const Tensor& x, const Batch& batch)
      const;
  Context context(const Parameters& parameters, size_t layer, const Batch& batch, int64_t length)
      const;
  Tensor visible(size_t layer, const Batch& batch, int64_t length) const;
  Tensor mlp(const Parameters& parameters, size_t layer, const Tensor& x) const;

  DFlashConfig config_;
  Tensor embedding_;
  double embedding_scale_;
  Precision precision_;
};

/// Initial weights: linears N(0, 0.02) as the published recipe has it, or N(0, 1 / inputs) where
/// `by_fan_in`; norms 1. Philox numbers of `seed`, so that every machine begins alike.
enum class InitialScale { kFixed, kByFanIn };
Parameters initial_drafter(const DFlashConfig& config, uint64_t seed, InitialScale scale);

}  // namespace octet::train
