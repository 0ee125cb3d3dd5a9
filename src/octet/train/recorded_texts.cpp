#include "octet/train/recorded_texts.h"

#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/evaluate/digest.h"
#include "octet/models/gemma4/config.h"

namespace octet::train {
namespace {

/// That of a file whose digest is right and whose header was changed all the same.
void require_hidden(const FeatureFile& file, const Checkpoint& target) {
  const int64_t expected = read_gemma4_config(target).hidden;
  if (file.header().hidden != expected) {
    throw Error(
        ErrorKind::kMismatch,
        fmt::format(
            "{}: features have {} columns a layer, expected {} of {}; record them again",
            file.path(),
            file.header().hidden,
            expected,
            target.path
        )
    );
  }
}

void add_record(RecordedTexts& result, RecordPlace place, const TextRules& rules) {
  const FeatureFile& file = result.files[place.file];
  const FeatureRecord& record = file.records()[static_cast<size_t>(place.record)];
  TrainingText text = {record.tokens, record.prompt_tokens};
  try {
    check_text(text, rules);
  } catch (Error& error) {
    error.add_context(fmt::format("{}, record {}", file.path(), place.record));
    if (rules.bad == BadLines::kRefuse) {
      throw;
    }
    result.skipped.emplace_back(error.what());
    return;
  }
  result.texts.push_back(std::move(text));
  result.places.push_back(place);
}

}  // namespace

std::vector<float> RecordedTexts::features(int64_t text, std::span<const int> layers) const {
  const RecordPlace place = places[static_cast<size_t>(text)];
  return files[place.file].features(place.record, layers);
}

uint64_t RecordedTexts::digest() const {
  Digest digest;
  for (const FeatureFile& file : files) {
    digest.add(file.digest());
    digest.fold();
  }
  return digest.value();
}

RecordedTexts read_recorded_texts(
    const std::vector<std::string>& paths, const Checkpoint& target, const TextRules& rules
) {
  RecordedTexts result;
  for (const std::string& path : paths) {
    result.files.push_back(FeatureFile::open(path));
    const FeatureFile& file = result.files.back();
    require_target(file, target);
    require_hidden(file, target);
    const size_t before = result.texts.size();
    for (int64_t record = 0; record < std::ssize(file.records()); ++record) {
      add_record(result, {result.files.size() - 1, record}, rules);
    }
    if (result.texts.size() == before) {
      throw Error(
          ErrorKind::kMalformed,
          fmt::format("{}: holds no text to train on, expected one record at least", path)
      );
    }
  }
  return result;
}

}  // namespace octet::train
