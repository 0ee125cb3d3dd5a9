// A target without its layers: the embedding and the head that it lends to its drafter, so that
// drafts can be learned and judged on recorded features. Reads two tensors of the file (one, where
// the head is tied) and runs no forward. Invariant: embed() and head() give what the whole target
// gives, to the bit.
#pragma once

#include <memory>
#include <span>

#include "octet/kernels/ops.h"
#include "octet/models/target_model.h"
#include "octet/tensor/checkpoint.h"

namespace octet {

class LentVocabulary final : public TargetModel {
 public:
  /// Throws Error as the whole target does.
  LentVocabulary(std::shared_ptr<const Checkpoint> checkpoint, Ops& ops);

  const TargetShape& shape() const override { return shape_; }
  int64_t max_rows() const override { return 0; }
  ModelMemory memory() const override { return memory_; }
  /// Never: there are no layers.
  std::unique_ptr<SequenceCache> new_cache(int64_t positions, KvType type) const override;
  void forward(std::span<const SequenceRows> batch, std::span<const int> taps, ForwardRows& out)
      override;
  void embed(std::span<const TokenId> ids, float scale, Rows out) override;
  void head(ConstRows hidden, Rows logits) override;
  const Weight* head_weight() const override { return head_.get(); }
  const LogicalTensor* head_tensor() const override { return head_tensor_; }
  float final_softcap() const override { return softcap_; }

 private:
  std::shared_ptr<const Checkpoint> checkpoint_;
  Ops& ops_;
  TargetShape shape_;
  ModelMemory memory_;
  float softcap_ = 0.0F;
  std::shared_ptr<const LogicalTensor> embedding_;
  std::unique_ptr<Weight> head_;
  const LogicalTensor* head_tensor_ = nullptr;
};

}  // namespace octet
