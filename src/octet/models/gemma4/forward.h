// The gemma4 target: a forward pass over rows of any sequences, written as named calls of backend
// operations in the order of the published equations. Knows nothing of files, drafting or sampling.
// Invariant: a row's results are the same bits whatever other rows, sequences, chunks or threads
// there are.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "octet/models/gemma4/config.h"
#include "octet/models/gemma4/row_plan.h"
#include "octet/models/gemma4/weights.h"
#include "octet/models/kv_cache.h"
#include "octet/models/rope.h"
#include "octet/models/row_buffer.h"
#include "octet/models/target_model.h"
#include "octet/tensor/checkpoint.h"

namespace octet {

struct TargetOptions {
  /// Most rows of one sequence in one forward: the prefill chunk, and the spare rows of the rings.
  int64_t max_rows = 256;
  /// Leaves out the layers of rows that nobody reads. Results are the same; off is for tests of
  /// just that.
  bool skip_unread_rows = true;
  TablePlace tables = TablePlace::kFile;
  LoadProgress progress;
};

/// The layers that own keys and values, in order.
std::vector<KvLayer> kv_layers_of(const Gemma4Config& config);
/// Floats of activations that a forward keeps for each row.
int64_t activation_floats(const Gemma4Config& config);

class Gemma4Cache final : public SequenceCache {
 public:
  Gemma4Cache(std::span<const KvLayer> layers, int64_t positions, int64_t max_rows, KvType type);

  int64_t length() const override { return kv_.length(); }
  int64_t capacity() const override { return kv_.positions(); }
  int64_t bytes() const override { return kv_.bytes(); }
  bool can_truncate(int64_t length) const override { return kv_.can_truncate(length); }
  void truncate(int64_t length) override;
  int64_t keeps_until(int64_t length) const override { return kv_.keeps_until(length); }
  void copy_prefix(const SequenceCache& from, int64_t length) override;
  int64_t bytes_at(int64_t positions) const override { return kv_.bytes_at(positions); }
  void fill_for_measurement(int64_t length) override { kv_.fill_for_measurement(length); }

  KvCache& kv() { return kv_; }

 private:
  KvCache kv_;
};

class Gemma4Model final : public TargetModel {
 public:
  /// Throws Error naming the file and the key or tensor that does not fit.
  Gemma4Model(std::shared_ptr<const Checkpoint> checkpoint, Ops& ops, TargetOptions options);

  const Gemma4Config& config() const { return config_; }
  const TargetShape& shape() const override { return shape_; }
  int64_t max_rows() const override { return options_.max_rows; }
  ModelMemory memory() const override;
  PassWork pass_work(const PassRows& rows, std::span<const int> taps, KvType type) const override;
  std::unique_ptr<SequenceCache> new_cache(int64_t positions, KvType type) const override;
  void forward(std::span<const SequenceRows> batch, std::span<const int> taps, ForwardRows& out)
      override;
  void embed(std::span<const TokenId> ids, float scale, Rows out) override;
  void head(ConstRows hidden, Rows logits) override;
  const Weight* head_weight() const override { return weights_.head.get(); }
  const LogicalTensor* head_tensor() const override { return weights_.head_tensor; }
  float final_softcap() const override { return config_.softcap; }

 private:
  using Batch = std::span<const SequenceRows>;

  void check_sequence(const SequenceRows& sequence) const;
  DepthRule depth_rule(std::span<const int> taps) const;
  RowPlan plan(Batch batch, std::span<const int> taps) const;
  void embed_rows(const RowPlan& plan);
  void embed_per_layer(const RowPlan& plan);
  void attention(int64_t l, const RowPlan& plan, Batch batch);
  void store_keys_and_values(int64_t l, const RowPlan& plan, Batch batch);
  void attend(int64_t l, const RowPlan& plan, Batch batch, Rows out);
  void mlp(int64_t l, const RowPlan& plan);
  void per_layer_input(int64_t l, const RowPlan& plan);
  void record_taps(int64_t l, const RowPlan& plan, std::span<const int> taps, Rows features) const;
  void logits(const RowPlan& plan, Batch batch, Rows out);
  Rows residual(int64_t rows) const { return residual_.rows().slice(0, rows); }

  std::shared_ptr<const Checkpoint> checkpoint_;
  Ops& ops_;
  TargetOptions options_;
  Gemma4Config config_;
  int64_t tables_bytes_ = 0;
  int64_t weights_bytes_ = 0;
  int64_t result_bytes_ = 0;  // of the last forward's ForwardRows
  Gemma4Weights weights_;
  TargetShape shape_;
  std::vector<KvLayer> kv_layers_;  // of the layers that own keys and values, in order
  std::vector<size_t> kv_index_;    // layer -> index of its donor in kv_layers_
  Rope sliding_rope_;
  Rope full_rope_;

  // Activations of one forward, [rows, ...] in the plan's order.
  RowBuffer residual_;    // [rows, D]
  RowBuffer normed_;      // [rows, D]
  RowBuffer branch_;      // [rows, D]: what a block adds to the residual
  RowBuffer query_;       // [rows, H*d]
  RowBuffer key_;         // [rows, K*d]
  RowBuffer value_;       // [rows, K*d]
  RowBuffer attended_;    // [rows, H*d]
  RowBuffer gate_;        // [rows, F]
  RowBuffer up_;          // [rows, F]
  RowBuffer ple_input_;   // [rows, L*P]
  RowBuffer ple_tokens_;  // [rows, L*P]
  RowBuffer ple_gate_;    // [rows, P]
};

}  // namespace octet
