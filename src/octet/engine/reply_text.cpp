#include "octet/engine/reply_text.h"

#include <utility>

namespace octet {

ReplyText::ReplyText(
    const Tokenizer& tokenizer, std::shared_ptr<const StopStrings> stop_strings, int64_t unwatched
)
    : tokenizer_(tokenizer), matcher_(std::move(stop_strings)), unwatched_(unwatched) {}

bool ReplyText::push(TokenId token, bool end) {
  if (unwatched_ > 0) {
    --unwatched_;
    const bool spells = !end && token < tokenizer_.vocabulary_size();
    pieces_.push_back(spells ? decoder_.push(tokenizer_.bytes(token)) : std::string());
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
