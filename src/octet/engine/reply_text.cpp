#include "octet/engine/reply_text.h"

#include <utility>

namespace octet {

ReplyText::ReplyText(
    const Tokenizer& tokenizer, std::shared_ptr<const StopStrings> stop_strings, Watch watch
)
    : tokenizer_(tokenizer),
      stop_strings_(std::move(stop_strings)),
      matcher_(stop_strings_),
      unwatched_(watch.unwatched),
      speech_only_(watch.speech_only) {}

void ReplyText::start(std::span<const TokenId> prompt) {
  const ChatTokens& tokens = tokenizer_.chat_tokens();
  for (const TokenId token : prompt) {
    conceals(token);  // where it ends is all that counts
    if (token == tokens.turn_open || token == tokens.turn_close) {
      concealed_ = false;  // what an earlier turn left open
    }
  }
}

bool ReplyText::conceals(TokenId token) {
  const ChatTokens& tokens = tokenizer_.chat_tokens();
  const bool opens = token == tokens.channel_open || token == tokens.tool_call_open;
  const bool closes = token == (call_ ? tokens.tool_call_close : tokens.channel_close);
  const bool before = concealed_;
  concealed_ = opens || (concealed_ && !closes);
  call_ = opens ? token == tokens.tool_call_open : call_;
  return concealed_ || (before && closes);
}

/// What the token spells, past the stop strings.
std::string ReplyText::pass(TokenId token, bool end) {
  const bool spells = !end && token < tokenizer_.vocabulary_size();
  return spells ? decoder_.push(tokenizer_.bytes(token)) : std::string();
}

bool ReplyText::push(TokenId token, bool end) {
  const bool concealed = speech_only_ && conceals(token);
  if (unwatched_ > 0) {
    --unwatched_;
    pieces_.push_back(pass(token, end));
    return false;
  }
  if (concealed) {
    // No stop string reaches across: what was held back for one is said.
    std::string text = decoder_.push(held_);
    held_.clear();
    released_ = 0;
    matcher_ = StopMatcher(stop_strings_);
    pieces_.push_back(text + pass(token, end));
    return false;
  }
  // Rows that pad the model's vocabulary beyond the tokenizer's spell nothing.
  if (!end && token < tokenizer_.vocabulary_size()) {
    const std::string_view bytes = tokenizer_.bytes(token);
    held_ += bytes;
    matcher_.advance(bytes);
  }
  pieces_.push_back(release());
  return matcher_.matched();
}

std::string ReplyText::release() {
  const auto count = static_cast<size_t>(matcher_.publishable_bytes() - released_);
  std::string text = decoder_.push(std::string_view(held_).substr(0, count));
  held_.erase(0, count);
  released_ += static_cast<int64_t>(count);
  return text;
}

std::vector<std::string> ReplyText::take_pieces() {
  return std::exchange(pieces_, {});
}

std::string ReplyText::finish() {
  std::string text;
  if (!matcher_.matched()) {
    text = decoder_.push(held_);
  }
  held_.clear();
  return text + decoder_.flush();
}

}  // namespace octet
