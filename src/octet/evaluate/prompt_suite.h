// Prompts of evaluation suites: one JSON object a line, {"turns": [user message, ...]} and, where
// given, "suite", "id", "category", "language", "system" and "tools". The one reader of such files.
// Not for running them (evaluation.h). Invariant: every prompt has at least one turn; a line that
// is not such an object is an Error or is reported, never dropped in silence.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace octet {

struct SuitePrompt {
  std::string suite;
  std::string id;
  std::string category;
  std::string language;
  std::string system;
  std::vector<std::string> turns;
  std::shared_ptr<const nlohmann::ordered_json> tools;  // an array in OpenAI's form; null: none
  std::string path;  // of the file that it was read from; empty: of none
  int64_t line = 0;  // in that file, from 1
};

/// What to do about lines that are no prompts: empty ones are always skipped.
enum class BadLines : uint8_t { kRefuse, kSkip };

struct SkippedLine {
  std::string path;
  int64_t line = 0;  // from 1
  std::string why;
};

struct PromptSuite {
  std::vector<SuitePrompt> prompts;
  std::vector<SkippedLine> skipped;
};

/// The first `limit` prompts of the file (0: all), appended. Throws Error naming file, line and
/// what was expected; also when the file holds no prompt at all.
void read_suite(const std::string& path, int64_t limit, BadLines bad, PromptSuite& suite);

/// Where a user finds the prompt: "FILE: line 3", or its place and id where it is of no file.
/// `index`: in the list of all prompts, from 0.
std::string place_of(const SuitePrompt& prompt, int64_t index);

/// A number that tells lists of prompts apart: by ids and texts, wherever they stand.
uint64_t suite_digest(std::span<const SuitePrompt> prompts);

}  // namespace octet
