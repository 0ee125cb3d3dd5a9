#include "octet/cli/prompt_file.h"

#include <utility>

#include "octet/chat/chat_format.h"
#include "octet/evaluate/prompt_suite.h"

namespace octet::cli {

std::vector<Prompt> built_in_prompts() {
  return {
      {"built-in 1", "", "Turn on the light in the kitchen and set it to 40 percent."},
      {"built-in 2", "", "What is the capital of France?"},
      {"built-in 3", "You are a helpful shop assistant.", "I am looking for a birthday present."},
  };
}

std::vector<Prompt> read_prompts(const std::string& path, int64_t limit) {
  PromptSuite suite;
  read_suite(path, limit, BadLines::kRefuse, suite);
  std::vector<Prompt> prompts;
  prompts.reserve(suite.prompts.size());
  for (SuitePrompt& prompt : suite.prompts) {
    prompts.push_back(
        {std::move(prompt.id), std::move(prompt.system), std::move(prompt.turns.front())}
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
