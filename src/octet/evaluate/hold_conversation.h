// One conversation with an engine: the user's turns of a prompt, one after the other, each with the
// replies before it. Not for adding up or storing (evaluation.h, generate_data.h). Invariant: what
// is said depends on the prompt and the settings alone, never on other conversations of the engine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "octet/base/error.h"
#include "octet/chat/chat_template.h"
#include "octet/engine/engine.h"
#include "octet/evaluate/prompt_suite.h"
#include "octet/sampling/sampling_params.h"

namespace octet {

struct ConversationSettings {
  SamplingParams sampling;
  bool thinking = true;      // enable_thinking of the template
  int64_t max_tokens = 128;  // of a reply
  int64_t max_turns = 0;     // 0: all
  int draft_max = 0;
  bool adapt_drafts = false;
  bool ignore_end = false;  // go on after end tokens, to max_tokens
};

struct ConversationTurn {
  std::vector<TokenId> prompt;
  std::optional<ReplyFinished> reply;
  std::optional<Error> error;  // why there is no reply: then the conversation ends
};

/// A tool call ends the conversation: nobody answers it.
std::vector<ConversationTurn> hold_conversation(
    Engine& engine,
    const ChatTemplate& chat_template,
    const std::shared_ptr<const Tokenizer>& tokenizer,
    const SuitePrompt& prompt,
    const ConversationSettings& settings
);

struct ConversationTask {
  const SuitePrompt* prompt = nullptr;
  ConversationSettings settings;
};

/// All of them at a time, in their order. The engine's parallel must be as many.
std::vector<std::vector<ConversationTurn>> hold_conversations(
    Engine& engine,
    const ChatTemplate& chat_template,
    const std::shared_ptr<const Tokenizer>& tokenizer,
    std::span<const ConversationTask> tasks
);

}  // namespace octet
