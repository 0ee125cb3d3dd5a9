// Training a small gemma4 target on text: every token of a piece is foretold from those before it.
// Not for the loop around it (trainer.h). Invariant: all pieces have one length, and which ones a
// step reads depends on the seed and the step alone.
#pragma once

#include <cstdint>
#include <span>

#include "octet/train/head_loss.h"
#include "octet/train/target_network.h"
#include "octet/train/trainer.h"
#include "octet/train/training_text.h"

namespace octet::train {

class TargetTask : public TrainingTask {
 public:
  /// `pieces` of packed_texts() must outlive the task.
  TargetTask(
      TargetNetwork network,
      Parameters parameters,
      std::span<const TrainingText> pieces,
      Precision precision,
      uint64_t seed
  );

  Parameters& parameters() override { return parameters_; }
  ParameterRule rule(const Parameter& parameter) const override;
  BatchSums accumulate(const BatchShare& share) override;

  /// Mean loss of pieces that are not learned from.
  BatchSums judge(std::span<const TrainingText> pieces);

 private:
  struct Foretold;
  Foretold foretell(std::span<const TrainingText* const> pieces);

  TargetNetwork network_;
  Parameters parameters_;
  std::span<const TrainingText> pieces_;
  Precision precision_;
  SampleOrder order_;
};

}  // namespace octet::train
