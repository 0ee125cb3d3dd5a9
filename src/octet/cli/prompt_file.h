// Prompts for `octet verify`: a few built-in ones, or a file with one JSON object a line as
// evaluation suites publish them (evaluate/prompt_suite.h). Only the first user turn and the system
// text are used: later turns would need replies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/base/token.h"
#include "octet/text/tokenizer.h"

namespace octet::cli {

struct Prompt {
  std::string id;
  std::string system;
  std::string text;
};

std::vector<Prompt> built_in_prompts();

/// The first `limit` prompts of the file (0: all). Throws Error naming file, line and what was
/// expected.
std::vector<Prompt> read_prompts(const std::string& path, int64_t limit);

/// The prompt as a conversation that waits for the model's turn, begin token included.
std::vector<TokenId> encode_prompt(const Tokenizer& tokenizer, const Prompt& prompt);

}  // namespace octet::cli
