#include "octet/text/chat_format.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/utf8.h"

namespace octet {
namespace {

constexpr std::string_view kConversationalSentence =
    "Keep responses brief, natural, and easy to understand in conversation.";

/// What templates mean by white space: that of Python's str.strip.
bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

std::string_view trim(std::string_view text) {
  size_t begin = text.size();
  size_t end = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text, at);
    const size_t next = at + static_cast<size_t>(step.length);
    if (step.status != Utf8Status::kValid || !is_space(step.code_point)) {
      begin = std::min(begin, at);
      end = next;
    }
    at = next;
  }
  return begin < end ? text.substr(begin, end - begin) : std::string_view();
}

/// Collects spans; neighbours of the same kind become one.
class SpanWriter {
 public:
  void grammar(std::string_view text) { append(text, SpecialTokens::kParse); }
  void caller(std::string_view text) { append(text, SpecialTokens::kPlain); }
  std::vector<TextSpan> take() { return std::move(spans_); }

 private:
  void append(std::string_view text, SpecialTokens special_tokens) {
    if (text.empty()) {
      return;
    }
    if (spans_.empty() || spans_.back().special_tokens != special_tokens) {
      spans_.push_back({.text = {}, .special_tokens = special_tokens});
    }
    spans_.back().text.append(text);
  }

  std::vector<TextSpan> spans_;
};

void write_system_turn(const ChatMessage* system, const ChatOptions& options, SpanWriter& out) {
  out.grammar("<|turn>system\n");
  if (options.thinking) {
    out.grammar("<|think|>\n");
  }
  std::vector<std::string> texts;
  if (system != nullptr) {
    texts.emplace_back(trim(system->text));
  }
  if (options.thinking && options.thinking_token_budget) {
    texts.push_back(fmt::format(
        "Ensure that your thinking process is concise and does not exceed {} tokens.",
        *options.thinking_token_budget
    ));
  }
  if (options.conversational_mode) {
    texts.emplace_back(kConversationalSentence);
  }
  out.caller(fmt::format("{}", fmt::join(texts, " ")));
  out.grammar("<turn|>\n");
}

}  // namespace

std::vector<TextSpan> format_chat(
    std::span<const ChatMessage> messages, const ChatOptions& options
) {
  SpanWriter out;
  out.grammar("<bos>");
  const bool has_system = !messages.empty() && messages.front().role == ChatRole::kSystem;
  if (has_system || options.thinking || options.conversational_mode ||
      options.thinking_token_budget) {
    write_system_turn(has_system ? &messages.front() : nullptr, options, out);
  }
  for (size_t i = has_system ? 1 : 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    if (message.role == ChatRole::kSystem) {
      throw Error(
          ErrorKind::kInvalidArgument,
          fmt::format(
              "message {} is a system message, which is only allowed as the first message", i
          )
      );
    }
    out.grammar(message.role == ChatRole::kUser ? "<|turn>user\n" : "<|turn>model\n");
    out.caller(trim(message.text));
    out.grammar("<turn|>\n");
  }
  if (options.open_reply) {
    out.grammar("<|turn>model\n");
  }
  return out.take();
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
  return tokenizer.with_bos(tokenizer.encode_spans(format_chat(messages, options)));
}

}  // namespace octet
