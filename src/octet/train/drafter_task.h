// Training a DFlash drafter (dflash.md section 13): texts of the target, what the target has at
// their tokens (target_source.h), random anchors, masked blocks, and a loss weighted by place in
// the block. Not for the loop around it (trainer.h). Invariants: the target, its embedding and its
// head are frozen; which anchors a sample gets depends on the seed and the sample's number alone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "octet/train/drafter_network.h"
#include "octet/train/head_loss.h"
#include "octet/train/target_source.h"
#include "octet/train/trainer.h"
#include "octet/train/training_text.h"

namespace octet::train {

/// What teaches: the token of the text, or the target's whole distribution at it (distillation).
enum class Teacher { kTokens, kDistribution };

struct DrafterTaskSettings {
  int64_t anchors = 64;       // blocks of a sample, at most
  double weight_decay = 4.0;  // gamma: row k of a block weighs exp(-(k - 1) / gamma)
  Teacher teacher = Teacher::kDistribution;
  uint64_t seed = 0;
};

/// The places that anchors of a text may have: the anchor and the token behind it are learned ones.
/// Chooses at most `count` of them without repetition, ascending.
std::vector<int64_t> choose_anchors(
    const TrainingText& text, int64_t count, uint64_t seed, int64_t sample
);

class DrafterTask : public TrainingTask {
 public:
  /// `source`, which must outlive the task, gives features of the network's taps, and logits unless
  /// the tokens teach.
  DrafterTask(
      DrafterNetwork network,
      Parameters parameters,
      OutputHead head,
      TargetSource& source,
      DrafterTaskSettings settings
  );

  Parameters& parameters() override { return parameters_; }
  ParameterRule rule(const Parameter& parameter) const override;
  BatchSums accumulate(const BatchShare& share) override;

 private:
  struct Batch;

  void add_text(Batch& batch, int64_t text, std::span<const int64_t> anchors);

  DrafterNetwork network_;
  Parameters parameters_;
  OutputHead head_;
  TargetSource& source_;
  DrafterTaskSettings settings_;
  SampleOrder order_;
};

}  // namespace octet::train
