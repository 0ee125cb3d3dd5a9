#include "octet/engine/calibrate_embedding_scale.h"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/engine/acceptance_replay.h"
#include "octet/speculation/drafters/dflash_drafter.h"

namespace octet {

EmbeddingScaleCalibration calibrate_embedding_scale(
    TargetModel& target, NewDraftModel new_model, const CalibrationRequest& request
) {
  if (request.scales.empty() || request.prompts.empty()) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "calibrating the embedding scale needs at least one scale and one prompt"
    );
  }
  std::vector<std::unique_ptr<Drafter>> drafters;
  std::vector<ReplayVariant> variants;
  for (const float scale : request.scales) {
    drafters.push_back(std::make_unique<DFlashDrafter>(new_model(scale), target.final_softcap()));
    ReplayVariant variant;
    variant.name = fmt::format("embedding scale {}", scale);
    variant.drafter = drafters.back().get();
    variants.push_back(std::move(variant));
  }
  ReplayRequest replay;
  replay.prompts = request.prompts;
  replay.stop_tokens.assign(request.stop_tokens.begin(), request.stop_tokens.end());
  replay.max_tokens = request.tokens;
  replay.enough_tokens = request.tokens;
  const ReplayResult measured = replay_acceptance(target, variants, replay);

  EmbeddingScaleCalibration result;
  double best = 0.0;
  for (size_t i = 0; i < request.scales.size(); ++i) {
    const double length = measured.variants[i].pooled.mean_acceptance_length();
    result.trials.push_back({request.scales[i], length});
    if (length > best) {
      best = length;
      result.scale = request.scales[i];
    }
  }
  for (const std::vector<TokenId>& reply : measured.replies) {
    result.tokens += std::ssize(reply);
  }
  return result;
}

}  // namespace octet
