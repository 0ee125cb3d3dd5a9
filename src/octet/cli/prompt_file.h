// Prompts for `octet verify`: a few built-in ones, or a file with one JSON object a line as
// evaluation suites publish them. Only the first user turn and the system text are used: later
// turns would need replies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

}  // namespace octet::cli
