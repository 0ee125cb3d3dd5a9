// Text that a target writes itself, to calibrate it or its drafter on what they will see. Not for
// replies to users.
#pragma once

#include <vector>

#include "octet/base/token.h"
#include "octet/cli/options.h"
#include "octet/cli/terminal.h"
#include "octet/models/target_model.h"
#include "octet/text/tokenizer.h"

namespace octet::cli {

/// Replies at temperature 1, prompt and reply together; the begin token is left to the chunks.
/// Throws Error as read_prompts does.
std::vector<std::vector<TokenId>> write_rollouts(
    const CalibrationText& text, TargetModel& target, const Tokenizer& tokenizer, Progress& progress
);

}  // namespace octet::cli
