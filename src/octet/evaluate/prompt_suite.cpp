#include "octet/evaluate/prompt_suite.h"

#include <fstream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/base/error.h"
#include "octet/base/utf8.h"
#include "octet/evaluate/digest.h"
#include "octet/formats/json_value.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

// Longer than any prompt that fits a context; a file of another kind often has no line ends.
constexpr size_t kMostLineBytes = 8 << 20;
// Schemas of tools nest, seldom so far; what copies and writes them recurses as deep as they do.
constexpr JsonLimits kLineLimits = {.depth = 64};

[[noreturn]] void malformed(std::string why) {
  throw Error(ErrorKind::kMalformed, std::move(why));
}

std::string text_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) {
    return {};
  }
  if (found->is_number_integer()) {
    return std::to_string(found->get<int64_t>());
  }
  if (!found->is_string()) {
    malformed(fmt::format("\"{}\" is {}, expected a string", name, found->type_name()));
  }
  return found->get<std::string>();
}

SuitePrompt parse_prompt(const std::string& line) {
  if (line.size() > kMostLineBytes) {
    malformed(fmt::format("has {} bytes, expected at most {}", line.size(), kMostLineBytes));
  }
  if (!is_valid_utf8(line)) {
    malformed("is not UTF-8");
  }
  parse_json(std::as_bytes(std::span(line)), kLineLimits);
  const Json object = Json::parse(line, nullptr, false);
  if (!object.is_object()) {
    malformed("expected an object with \"turns\", a list of user messages");
  }
  SuitePrompt prompt;
  const auto turns = object.find("turns");
  if (turns == object.end() || !turns->is_array() || turns->empty()) {
    malformed("expected an object with \"turns\", a list of user messages");
  }
  for (const Json& turn : *turns) {
    if (!turn.is_string()) {
      malformed("expected an object with \"turns\", a list of user messages");
    }
    prompt.turns.push_back(turn.get<std::string>());
  }
  prompt.suite = text_of(object, "suite");
  prompt.id = text_of(object, "id");
  prompt.category = text_of(object, "category");
  prompt.language = text_of(object, "language");
  prompt.system = text_of(object, "system");
  const auto tools = object.find("tools");
  if (tools != object.end() && !tools->is_null()) {
    if (!tools->is_array()) {
      malformed(fmt::format("\"tools\" is {}, expected an array", tools->type_name()));
    }
    prompt.tools = std::make_shared<const Json>(*tools);
  }
  return prompt;
}

}  // namespace

void read_suite(const std::string& path, int64_t limit, BadLines bad, PromptSuite& suite) {
  std::ifstream file(path);
  if (!file) {
    throw Error(
        ErrorKind::kNotFound,
        fmt::format("{}: cannot be opened; --prompts needs a readable file", path)
    );
  }
  int64_t taken = 0;
  const size_t skipped_before = suite.skipped.size();
  std::string line;
  for (int64_t number = 1; (limit == 0 || taken < limit) && std::getline(file, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) {
      continue;
    }
    try {
      SuitePrompt& prompt = suite.prompts.emplace_back(parse_prompt(line));
      prompt.path = path;
      prompt.line = number;
      ++taken;
    } catch (Error& error) {
      if (bad == BadLines::kRefuse) {
        error.add_context(fmt::format("{}: line {}", path, number));
        throw;
      }
      suite.skipped.push_back({path, number, error.what()});
    }
  }
  if (taken == 0) {
    std::string why = fmt::format("{}: holds no prompt; expected one JSON object a line", path);
    if (suite.skipped.size() > skipped_before) {
      const SkippedLine& first = suite.skipped[skipped_before];
      why += fmt::format("; the first that was skipped is line {}: {}", first.line, first.why);
    }
    malformed(std::move(why));
  }
}

std::string place_of(const SuitePrompt& prompt, int64_t index) {
  return prompt.path.empty() ? fmt::format("prompt {} ('{}')", index + 1, prompt.id)
                             : fmt::format("{}: line {}", prompt.path, prompt.line);
}

uint64_t suite_digest(std::span<const SuitePrompt> prompts) {
  Digest digest;
  for (const SuitePrompt& prompt : prompts) {
    digest.add_text(prompt.suite);
    digest.add_text(prompt.id);
    digest.add_text(prompt.system);
    for (const std::string& turn : prompt.turns) {
      digest.add_text(turn);
    }
    digest.add_text(prompt.tools != nullptr ? prompt.tools->dump() : "");
  }
  return digest.value();
}

}  // namespace octet
