#include "octet/cli/prompt_file.h"

#include <fstream>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/chat/chat_format.h"
#include "octet/formats/json_value.h"

namespace octet::cli {
namespace {

std::string text_or_empty(const JsonValue& object, std::string_view name) {
  const std::string* text = object.find_string(name);
  return text == nullptr ? std::string() : *text;
}

Prompt parse_prompt(const std::string& line) {
  const JsonValue object = parse_json(std::as_bytes(std::span(line)));
  const JsonArray* turns = object.find_array("turns");
  if (turns == nullptr || turns->empty() || turns->front().string() == nullptr) {
    throw Error(
        ErrorKind::kMalformed, "expected an object with \"turns\", a list of user messages"
    );
  }
  return {text_or_empty(object, "id"), text_or_empty(object, "system"), *turns->front().string()};
}

}  // namespace

std::vector<Prompt> built_in_prompts() {
  return {
      {"built-in 1", "", "Turn on the light in the kitchen and set it to 40 percent."},
      {"built-in 2", "", "What is the capital of France?"},
      {"built-in 3", "You are a helpful shop assistant.", "I am looking for a birthday present."},
  };
}

std::vector<Prompt> read_prompts(const std::string& path, int64_t limit) {
  std::ifstream file(path);
  if (!file) {
    throw Error(
        ErrorKind::kNotFound,
        fmt::format("{}: cannot be opened; --prompts needs a readable file", path)
    );
  }
  std::vector<Prompt> prompts;
  std::string line;
  for (int64_t number = 1; std::getline(file, line); ++number) {
    if (limit > 0 && static_cast<int64_t>(prompts.size()) == limit) {
      break;
    }
    if (line.find_first_not_of(" \t\r") == std::string::npos) {
      continue;
    }
    try {
      prompts.push_back(parse_prompt(line));
    } catch (Error& error) {
      error.add_context(fmt::format("{}: line {}", path, number));
      throw;
    }
  }
  if (prompts.empty()) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format("{}: holds no prompt; expected one JSON object a line", path)
    );
  }
  return prompts;
}

std::vector<TokenId> encode_prompt(const Tokenizer& tokenizer, const Prompt& prompt) {
  std::vector<ChatMessage> messages;
  if (!prompt.system.empty()) {
    messages.push_back({ChatRole::kSystem, prompt.system});
  }
  messages.push_back({ChatRole::kUser, prompt.text});
  return encode_chat(tokenizer, messages, ChatOptions{});
}

}  // namespace octet::cli
