// Conversations to prompts for the program's own commands: who spoke and what, and the few settings
// that they have. Not for requests of clients (chat_template.h), which does the work here too.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "octet/base/token.h"
#include "octet/chat/chat_template.h"
#include "octet/text/tokenizer.h"

namespace octet {

enum class ChatRole { kSystem, kUser, kAssistant };

struct ChatMessage {
  ChatRole role = ChatRole::kUser;
  std::string text;  // of an assistant: what it said aloud, without its thoughts
};

struct ChatOptions {
  /// The model may think before it speaks.
  bool thinking = true;
  /// Asks for brief, natural replies.
  bool conversational_mode = false;
  /// Asks for short thoughts, when thinking; a request, not a limit.
  std::optional<int64_t> thinking_token_budget = std::nullopt;
  /// End with the opened turn of the model.
  bool open_reply = true;
};

/// The prompt as spans, control tokens apart from what was said. Throws Error(kInvalidArgument) for
/// what the template refuses, such as a system message that is not the first.
std::vector<TextSpan> format_chat(
    const ChatTemplate& chat,
    const Tokenizer& tokenizer,
    std::span<const ChatMessage> messages,
    const ChatOptions& options
);

/// The prompt as ids, with exactly one BOS at the start.
std::vector<TokenId> encode_chat(
    const ChatTemplate& chat,
    const Tokenizer& tokenizer,
    std::span<const ChatMessage> messages,
    const ChatOptions& options
);

/// The same for messages and tools in JSON, as ChatInput has them. `tools` null: none.
std::vector<TokenId> encode_chat(
    const ChatTemplate& chat,
    const Tokenizer& tokenizer,
    const nlohmann::ordered_json& messages,
    const nlohmann::ordered_json& tools,
    const ChatOptions& options
);

/// The same with the built-in template for Bolt. Throws Error(kUnsupported) when the vocabulary
/// lacks a token of the turn grammar.
std::vector<TokenId> encode_chat(
    const Tokenizer& tokenizer, std::span<const ChatMessage> messages, const ChatOptions& options
);

}  // namespace octet
