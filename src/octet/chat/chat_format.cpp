#include "octet/chat/chat_format.h"

#include <nlohmann/json.hpp>

#include "octet/base/error.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

const char* role_name(ChatRole role) {
  return role == ChatRole::kSystem ? "system" : role == ChatRole::kUser ? "user" : "assistant";
}

Json arguments_of(const ChatOptions& options) {
  Json arguments = {
      {"enable_thinking", options.thinking}, {"conversational_mode", options.conversational_mode}};
  if (options.thinking_token_budget) {
    arguments["thinking_token_budget"] = *options.thinking_token_budget;
  }
  return arguments;
}

}  // namespace

std::vector<TextSpan> format_chat(
    const ChatTemplate& chat,
    const Tokenizer& tokenizer,
    std::span<const ChatMessage> messages,
    const ChatOptions& options
) {
  Json array = Json::array();
  for (const ChatMessage& message : messages) {
    array.push_back({{"role", role_name(message.role)}, {"content", message.text}});
  }
  const Json arguments = arguments_of(options);
  return chat.render(
      tokenizer, {.messages = &array, .arguments = &arguments, .open_reply = options.open_reply}
  );
}

std::vector<TokenId> encode_chat(
    const ChatTemplate& chat,
    const Tokenizer& tokenizer,
    std::span<const ChatMessage> messages,
    const ChatOptions& options
) {
  return tokenizer.with_bos(tokenizer.encode_spans(format_chat(chat, tokenizer, messages, options))
  );
}

std::vector<TokenId> encode_chat(
    const ChatTemplate& chat,
    const Tokenizer& tokenizer,
    const nlohmann::ordered_json& messages,
    const nlohmann::ordered_json& tools,
    const ChatOptions& options
) {
  const Json arguments = arguments_of(options);
  return chat.encode(
      tokenizer,
      {.messages = &messages,
       .tools = &tools,
       .arguments = &arguments,
       .open_reply = options.open_reply}
  );
}

std::vector<TokenId> encode_chat(
    const Tokenizer& tokenizer, std::span<const ChatMessage> messages, const ChatOptions& options
) {
  const ChatTokens& tokens = tokenizer.chat_tokens();
  if (tokens.turn_open == kNoToken || tokens.turn_close == kNoToken ||
      (options.thinking && tokens.think == kNoToken)) {
    throw Error(
        ErrorKind::kUnsupported,
        "the vocabulary lacks <|turn>, <turn|> or <|think|>, so this model cannot chat in the "
        "grammar of Gemma 4"
    );
  }
  static const ChatTemplate bolt(BuiltinTemplate::kBolt);
  return encode_chat(bolt, tokenizer, messages, options);
}

}  // namespace octet
