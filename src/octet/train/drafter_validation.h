// How many tokens a step a drafter in training would give: judged along greedy replies that the
// target writes meanwhile, or along recorded ones (recorded_texts.h). Not for the loss.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "octet/base/token.h"
#include "octet/models/target_model.h"
#include "octet/speculation/drafters/dflash_drafter.h"
#include "octet/text/tokenizer.h"
#include "octet/train/recorded_texts.h"
#include "octet/train/training_run.h"
#include "octet/train/training_text.h"

namespace octet::train {

/// What the target replies to: the given tokens of each text, or where it names none those before
/// its first reply, or where nobody replies its beginning.
std::vector<std::vector<TokenId>> prompts_of(
    const TrainingTexts& texts, const Tokenizer& tokenizer
);

/// No further prompt or record once the replies have `enough_tokens` together.
struct ValidationLimits {
  const Tokenizer&
      tokenizer;  // of the target: which tokens end a reply, and which are never chosen
  int64_t enough_tokens = 0;
};

/// The value is the mean acceptance length.
Validation validate_by_replies(
    TargetModel& target,
    DFlashDrafter& drafter,
    std::span<const std::vector<TokenId>> prompts,
    const ValidationLimits& limits
);

/// The same along recorded texts, of which there is one at least, sampled as they were: no layer of
/// the target runs. Throws Error(kMismatch) for a tap of the drafter that was not recorded.
Validation validate_on_records(
    const RecordedTexts& recorded,
    DFlashDrafter& drafter,
    int64_t vocabulary,
    const ValidationLimits& limits
);

}  // namespace octet::train
