#include "octet/train/drafter_validation.h"

#include <algorithm>

#include "octet/engine/acceptance_replay.h"
#include "octet/evaluate/feature_replay.h"

namespace octet::train {
namespace {

constexpr int64_t kShortestPrompt = 48;  // of a validation text that names none
constexpr int64_t kReplyTokens = 256;

Validation validation_of(const AcceptanceStatistics& pooled) {
  Validation validation;
  validation.value = pooled.mean_acceptance_length();
  for (int k = 0; k < pooled.rows(); ++k) {
    validation.by_position.push_back(pooled.joint(k));
  }
  return validation;
}

std::vector<TokenId> stops_of(const Tokenizer& tokenizer) {
  const auto stops = tokenizer.stop_ids();
  return {stops.begin(), stops.end()};
}

}  // namespace

std::vector<std::vector<TokenId>> prompts_of(
    const TrainingTexts& texts, const Tokenizer& tokenizer
) {
  std::vector<std::vector<TokenId>> prompts;
  for (const TrainingText& text : texts.texts) {
    const int64_t half = std::max<int64_t>(1, std::ssize(text.tokens) / 2);
    int64_t length = text.first_learned;
    if (length <= 1) {
      length = first_reply(text.tokens, tokenizer);
    }
    if (length == 0) {
      length = std::min(kShortestPrompt, half);
    }
    prompts.emplace_back(text.tokens.begin(), text.tokens.begin() + length);
  }
  return prompts;
}

Validation validate_by_replies(
    TargetModel& target,
    DFlashDrafter& drafter,
    std::span<const std::vector<TokenId>> prompts,
    const ValidationLimits& limits
) {
  const ReplayVariant variant{"trained", &drafter};
  ReplayRequest request;
  request.prompts = prompts;
  request.stop_tokens = stops_of(limits.tokenizer);
  request.max_tokens = kReplyTokens;
  request.enough_tokens = limits.enough_tokens;
  const ReplayResult result = replay_acceptance(target, {&variant, 1}, request);
  return validation_of(result.variants.front().pooled);
}

Validation validate_on_records(
    const RecordedTexts& recorded,
    DFlashDrafter& drafter,
    int64_t vocabulary,
    const ValidationLimits& limits
) {
  const ReplayVariant variant{"trained", &drafter};
  RecordedReplayOptions options;
  options.stop_tokens = stops_of(limits.tokenizer);
  options.vocabulary = vocabulary;
  AcceptanceStatistics pooled;
  int64_t written = 0;
  for (const RecordPlace& place : recorded.places) {
    const FeatureFile& file = recorded.files[place.file];
    pooled.add(replay_record(
        file, place.record, variant, drafter.taps(), limits.tokenizer.suppressed_ids(), options
    ));
    const FeatureRecord& record = file.records()[static_cast<size_t>(place.record)];
    written += std::ssize(record.tokens) - record.prompt_tokens;
    if (limits.enough_tokens > 0 && written >= limits.enough_tokens) {
      break;
    }
  }
  return validation_of(pooled);
}

}  // namespace octet::train
