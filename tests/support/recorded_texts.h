// Files of recorded features for training tests, written as `octet generate-data` writes them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "octet/evaluate/checkpoint_digest.h"
#include "octet/evaluate/feature_file.h"
#include "octet/models/gemma4/lent_vocabulary.h"
#include "octet/models/gemma4/output_logits.h"
#include "octet/train/recorded_texts.h"
#include "octet/train/target_source.h"
#include "support/temporary_directory.h"
#include "support/training_fixture.h"

namespace octet::test {

/// A file with one record a text, whose values are 0.
inline std::string blank_recording(
    const FeatureHeader& header, std::span<const train::TrainingText> texts
) {
  std::string bytes = encode_feature_header(header);
  for (const train::TrainingText& text : texts) {
    FeatureRecord record;
    record.tokens = text.tokens;
    record.prompt_tokens = text.first_learned;
    record.max_tokens = std::ssize(text.tokens) - text.first_learned;
    const int64_t rows = std::ssize(text.tokens) - 1;
    const std::vector<float> values(static_cast<size_t>(rows * header.width()));
    bytes += encode_feature_record(
        header, record, {values.data(), rows, header.width(), header.width()}
    );
  }
  return bytes + encode_feature_end(std::ssize(texts));
}

/// What the fixture's target has at its texts, in these layers.
inline std::string recording_of(
    const TrainingFixture& fixture, FeatureType type, const std::vector<int>& layers
) {
  FeatureHeader header;
  header.type = type;
  header.hidden = fixture.target->shape().hidden;
  header.taps = layers;
  header.target_digest = checkpoint_digest(*fixture.target_checkpoint);
  std::string bytes = encode_feature_header(header);
  for (const train::TrainingText& text : fixture.texts) {
    FeatureRecord record;
    record.tokens = text.tokens;
    record.prompt_tokens = text.first_learned;
    record.max_tokens = std::ssize(text.tokens) - text.first_learned;
    // In chunks other than those of training: rows do not depend on them.
    TargetRun run = run_target(*fixture.target, text.tokens, 7, layers, KvType::kBF16);
    run.features.pop_back();
    std::vector<float> storage;
    bytes += encode_feature_record(header, record, as_rows(run.features, storage));
  }
  return bytes + encode_feature_end(std::ssize(fixture.texts));
}

inline train::TextRules rules_for(const TargetModel& target) {
  train::TextRules rules;
  rules.vocabulary = target.shape().vocabulary;
  rules.least_learned = 2;
  return rules;
}

/// Recorded texts of a fixture, and all that a source of them needs. No layer runs.
struct RecordedFixture {
  LentVocabulary vocabulary;
  OutputLogits logits;
  train::RecordedTexts texts;
  train::RecordedSource source;

  RecordedFixture(
      const TrainingFixture& fixture, const std::vector<std::string>& files, std::vector<int> taps
  )
      : vocabulary(fixture.target_checkpoint, *fixture.ops),
        logits(*fixture.target_checkpoint, *fixture.ops, vocabulary),
        texts(train::read_recorded_texts(
            files, *fixture.target_checkpoint, rules_for(*fixture.target)
        )),
        source(texts, std::move(taps), &logits) {}
};

}  // namespace octet::test
