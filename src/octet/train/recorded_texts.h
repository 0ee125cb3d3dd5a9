// Files of recorded features (evaluate/feature_file.h) as texts to train or judge on. Checks them
// as lines of text are checked (training_text.h); what was recorded of a text is read when it is
// asked for. Invariant: every text is a whole record of a file that was recorded with the target at
// hand; a record that is not so is an Error or is reported by number, never dropped in silence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "octet/evaluate/feature_file.h"
#include "octet/tensor/checkpoint.h"
#include "octet/train/training_text.h"

namespace octet::train {

struct RecordPlace {
  size_t file = 0;
  int64_t record = 0;  // of that file, from 0
};

struct RecordedTexts {
  std::vector<FeatureFile> files;
  std::vector<TrainingText> texts;
  std::vector<RecordPlace> places;   // of each text
  std::vector<std::string> skipped;  // records that are no texts: which, and why

  /// What the target had at all but the last token of a text, in these layers: [tokens - 1, layers
  /// * hidden]. Throws Error(kMismatch) for a layer that was not recorded.
  std::vector<float> features(int64_t text, std::span<const int> layers) const;
  /// A number that tells recordings apart, by all that their files hold.
  uint64_t digest() const;
};

/// Throws Error naming the file, the record and what was expected: for files that are damaged, of
/// another target or without any text, and for records that the rules forbid, unless those are
/// skipped.
RecordedTexts read_recorded_texts(
    const std::vector<std::string>& paths, const Checkpoint& target, const TextRules& rules
);

}  // namespace octet::train
