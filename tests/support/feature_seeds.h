// Files of recorded features as bytes: what is read again, damaged, and where fuzzing begins.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/evaluate/feature_file.h"

namespace octet::test {

struct FeatureSample {
  FeatureHeader header;
  std::vector<FeatureRecord> records;
  std::vector<std::vector<float>> values;  // of each record, row by row
  std::string bytes;
};

/// Three short records of two layers with three columns each.
inline FeatureSample feature_sample(FeatureType type) {
  FeatureSample sample;
  sample.header.type = type;
  sample.header.hidden = 3;
  sample.header.taps = {4, 1};
  sample.header.target_digest = 0x0123456789ABCDEF;
  sample.header.settings_digest = 42;
  sample.header.sampling.temperature = 0.75F;
  sample.header.sampling.top_k = 5;
  sample.bytes = encode_feature_header(sample.header);
  for (int64_t i = 0; i < 3; ++i) {
    FeatureRecord record;
    record.prompt = 10 + i;
    record.turn = i;
    record.thinking = i == 1;
    record.seed = ~static_cast<uint64_t>(i);
    record.max_tokens = 100 + i;
    record.prompt_tokens = 1 + i;
    for (int64_t t = 0; t < 3 + i; ++t) {
      record.tokens.push_back(static_cast<TokenId>(7 * t + i));
    }
    std::vector<float>& values = sample.values.emplace_back();
    const int64_t rows = std::ssize(record.tokens) - 1;
    for (int64_t v = 0; v < rows * sample.header.width(); ++v) {
      values.push_back(0.37F * static_cast<float>(v - 4) + static_cast<float>(i));
    }
    sample.bytes += encode_feature_record(
        sample.header, record, {values.data(), rows, sample.header.width(), sample.header.width()}
    );
    sample.records.push_back(record);
  }
  sample.bytes += encode_feature_end(3);
  return sample;
}

inline std::vector<std::string> feature_seeds() {
  return {feature_sample(FeatureType::kBF16).bytes, feature_sample(FeatureType::kF32).bytes};
}

}  // namespace octet::test
