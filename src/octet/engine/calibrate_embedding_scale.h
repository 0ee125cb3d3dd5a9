// Finds the scale that a drafter's block embeddings were trained with, where its file does not say:
// 1 or sqrt(hidden). A wrong one only costs acceptance, so the answer is measured: both are run
// over text that the target writes itself. Knows nothing of files: the caller stores the answer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "octet/base/function_ref.h"
#include "octet/base/token.h"
#include "octet/models/draft_model.h"
#include "octet/models/target_model.h"

namespace octet {

struct EmbeddingScaleTrial {
  float scale = 1.0F;
  double mean_acceptance_length = 0.0;
};

struct EmbeddingScaleCalibration {
  float scale = 1.0F;  // the better one; the first on a tie
  std::vector<EmbeddingScaleTrial> trials;
  int64_t tokens = 0;  // of the replayed text
};

using NewDraftModel = FunctionRef<std::unique_ptr<DraftModel>(float scale)>;

struct CalibrationRequest {
  std::span<const float> scales;
  std::span<const std::vector<TokenId>> prompts;
  std::span<const TokenId> stop_tokens;
  int64_t tokens = 256;  // replayed, at least 200 for a verdict; fewer when the prompts run out
};

/// Lets the target write greedily after each prompt in turn until there are enough tokens and
/// replays them with every scale. new_model(scale) makes the drafter with that scale. Throws
/// Error(kInvalidArgument) without scales or prompts.
EmbeddingScaleCalibration calibrate_embedding_scale(
    TargetModel& target, NewDraftModel new_model, const CalibrationRequest& request
);

}  // namespace octet
