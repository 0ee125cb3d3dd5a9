// The turn grammar of Gemma 4 as Nemotron 3.5 Bolt uses it, built in: messages to a prompt. Not a
// template engine and no tools; text only. Invariant: what a caller says is always in plain spans,
// so it can never become a control token; control tokens come from this file alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "octet/base/token.h"
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

/// The prompt as spans, from "<bos>" on. Texts are trimmed. Throws Error(kInvalidArgument) when a
/// system message is not the first.
std::vector<TextSpan> format_chat(
    std::span<const ChatMessage> messages, const ChatOptions& options
);

/// The prompt as ids, with exactly one BOS at the start. Throws Error(kUnsupported) when the
/// vocabulary lacks a token of the turn grammar.
std::vector<TokenId> encode_chat(
    const Tokenizer& tokenizer, std::span<const ChatMessage> messages, const ChatOptions& options
);

}  // namespace octet
