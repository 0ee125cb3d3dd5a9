// What the target has at the tokens of texts, for the training of its drafter: the features that
// the drafter reads and the logits that teach it. From the engine's own forward pass, or from
// recorded files. Not for which texts and anchors are learned (drafter_task.h). Invariant: where
// the files hold float32, both give the same bits for the same text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "octet/models/gemma4/output_logits.h"
#include "octet/models/target_model.h"
#include "octet/train/recorded_texts.h"
#include "octet/train/tensor.h"
#include "octet/train/training_text.h"

namespace octet::train {

class TargetSource {
 public:
  virtual ~TargetSource() = default;

  virtual std::span<const TrainingText> texts() const = 0;
  /// The features of text number `text` at all but its last token, which no block sees: [tokens -
  /// 1, taps * hidden]. Row i of `teacher` [positions, vocabulary] becomes the logits at
  /// positions[i], soft cap included, which foresee the token behind it; it stays as it is where no
  /// token of the text is behind it. Without positions no logits are formed and `teacher` may be
  /// undefined.
  virtual Tensor read(int64_t text, std::span<const int64_t> positions, const Tensor& teacher) = 0;
};

/// Runs the target over a text when it is read.
class EngineSource final : public TargetSource {
 public:
  /// `target` and `texts` must outlive the source; `taps` are layers of the target.
  EngineSource(TargetModel& target, std::span<const TrainingText> texts, std::vector<int> taps);

  std::span<const TrainingText> texts() const override { return texts_; }
  Tensor read(int64_t text, std::span<const int64_t> positions, const Tensor& teacher) override;

 private:
  TargetModel& target_;
  std::span<const TrainingText> texts_;
  std::vector<int> taps_;
};

/// Reads what was recorded; no layer of the target runs.
class RecordedSource final : public TargetSource {
 public:
  /// `logits` forms the teacher from the recorded last layer; null: read() is asked for none. Both
  /// must outlive the source. Throws Error(kMismatch) naming a file that lacks one of the taps, or
  /// the last layer where there are `logits`.
  RecordedSource(const RecordedTexts& recorded, std::vector<int> taps, OutputLogits* logits);

  std::span<const TrainingText> texts() const override { return recorded_.texts; }
  Tensor read(int64_t text, std::span<const int64_t> positions, const Tensor& teacher) override;

 private:
  void teach(int64_t text, std::span<const int64_t> positions, const Tensor& teacher);

  const RecordedTexts& recorded_;
  std::vector<int> taps_;
  OutputLogits* logits_;
};

}  // namespace octet::train
