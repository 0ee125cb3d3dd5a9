// Which head a drafter reads its drafts from: the pair's whole one, or a stored one
// (`octet draft-head`) that is found beside the drafter or named on the command line. It never
// changes text, only how many drafts are accepted and what they cost.
#pragma once

#include <memory>
#include <string>

#include "octet/tensor/checkpoint.h"

namespace octet::cli {

inline constexpr const char* kDraftHeadAuto = "auto";  // beside the drafter, if there is one
inline constexpr const char* kDraftHeadFull = "full";  // the pair's

/// Where `octet draft-head` stores a head, and "auto" looks for it.
std::string draft_head_path(const Checkpoint& drafter);

/// Null for the pair's own head. `choice`: auto, full, or a file.
std::shared_ptr<const Checkpoint> choose_draft_head(
    const std::string& choice, const Checkpoint& drafter
);

/// "8192 of 262144 tokens in Q4_K (from the file beside the drafter)".
std::string describe_draft_head(const Checkpoint& head);

}  // namespace octet::cli
