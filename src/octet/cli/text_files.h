// Text files that models are run on for measuring. Control tokens in them count as such, so that
// dialogues can be given as they were rendered. Not for prompts of users.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "octet/base/token.h"
#include "octet/text/tokenizer.h"

namespace octet::cli {

/// The tokens of each file, without begin tokens. Throws Error naming a file that cannot be read.
std::vector<std::vector<TokenId>> read_texts(
    std::span<const std::string> files, const Tokenizer& tokenizer
);

}  // namespace octet::cli
