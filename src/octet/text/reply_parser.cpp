#include "octet/text/reply_parser.h"

#include <algorithm>
#include <utility>

namespace octet {
namespace {

constexpr std::string_view kThoughtLabel = "thought";
constexpr std::string_view kWhiteSpace = " \t\r\n";

void emit(ReplyPart part, std::string text, std::vector<ReplyEvent>& events) {
  if (!text.empty()) {
    events.push_back({.part = part, .text = std::move(text)});
  }
}

}  // namespace

ReplyParser::ReplyParser(std::shared_ptr<const Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)) {}

void ReplyParser::start(std::span<const TokenId> prompt) {
  const ChatTokens& tokens = tokenizer_->chat_tokens();
  std::vector<ReplyEvent> before;
  finish(before);
  size_t tail = prompt.size();
  while (tail > 0) {
    const TokenId token = prompt[tail - 1];
    if (token == tokens.channel_open || token == tokens.tool_call_open) {
      break;  // unless something closes it, which the walk below sees
    }
    if (token == tokens.turn_open || token == tokens.turn_close) {
      return;
    }
    --tail;
  }
  for (const TokenId token : prompt.subspan(tail == 0 ? prompt.size() : tail - 1)) {
    push(token, before);
  }
}

void ReplyParser::push(TokenId token, std::vector<ReplyEvent>& events) {
  const bool delimiter = state_ == State::kToolCall && token == tokenizer_->chat_tokens().quote;
  if (tokenizer_->is_control(token) && !delimiter) {
    push_control(token, events);
  } else {
    push_text(tokenizer_->bytes(token), events);
  }
}

void ReplyParser::finish(std::vector<ReplyEvent>& events) {
  enter(State::kSpeech, events);
}

void ReplyParser::push_control(TokenId token, std::vector<ReplyEvent>& events) {
  const ChatTokens& tokens = tokenizer_->chat_tokens();
  const bool opens = token == tokens.channel_open || token == tokens.tool_call_open;
  if (opens && state_ == State::kToolCall) {
    enter(State::kSpeech, events);
    events.push_back({.part = ReplyPart::kToolCall, .text = {}, .broken = true});
  }
  if (token == tokens.channel_open) {
    enter(State::kLabel, events);
  } else if (token == tokens.tool_call_open) {
    enter(State::kToolCall, events);
  } else if (token == tokens.tool_call_close && state_ == State::kToolCall) {
    enter(State::kSpeech, events);
    events.push_back({.part = ReplyPart::kToolCall, .text = {}, .complete = true});
  } else if (token == tokens.channel_close && (state_ == State::kThinking || state_ == State::kLabel)) {
    const bool thought = state_ == State::kThinking || label_ == kThoughtLabel;
    enter(State::kSpeech, events);
    if (thought) {
      events.push_back({.part = ReplyPart::kThinking, .text = {}, .complete = true});
    }
  }
}

void ReplyParser::push_text(std::string_view bytes, std::vector<ReplyEvent>& events) {
  switch (state_) {
    case State::kLabel:
      push_label(bytes, events);
      break;
    case State::kThinking:
      push_thought(decoder_.push(bytes), events);
      break;
    case State::kSpeech:
      emit(ReplyPart::kSpeech, decoder_.push(bytes), events);
      break;
    case State::kToolCall:
      emit(ReplyPart::kToolCall, decoder_.push(bytes), events);
      break;
  }
}

void ReplyParser::push_label(std::string_view bytes, std::vector<ReplyEvent>& events) {
  label_.append(bytes);
  if (kThoughtLabel.starts_with(label_)) {
    return;
  }
  std::string_view rest = label_;
  const bool thought = rest.starts_with(kThoughtLabel) &&
                       kWhiteSpace.find(rest[kThoughtLabel.size()]) != std::string_view::npos;
  if (thought) {
    rest.remove_prefix(kThoughtLabel.size());
  }
  // A channel of another name is speech, its name included: better shown than lost.
  state_ = thought ? State::kThinking : State::kSpeech;
  push_text(rest, events);
  label_.clear();
}

void ReplyParser::push_thought(std::string_view text, std::vector<ReplyEvent>& events) {
  if (!thought_started_) {
    text.remove_prefix(std::min(text.find_first_not_of(kWhiteSpace), text.size()));
  }
  const size_t end = text.find_last_not_of(kWhiteSpace) + 1;  // 0 when all is white space
  if (end > 0) {
    thought_started_ = true;
    emit(
        ReplyPart::kThinking, std::exchange(thought_space_, {}).append(text.substr(0, end)), events
    );
  }
  if (thought_started_) {
    thought_space_.append(text.substr(end));
  }
}

/// Ends the current part, whether or not it is complete, and starts another. An unfinished label is
/// dropped.
void ReplyParser::enter(State state, std::vector<ReplyEvent>& events) {
  const std::string rest = decoder_.flush();
  if (state_ == State::kThinking) {
    push_thought(rest, events);
  } else if (state_ != State::kLabel) {
    emit(state_ == State::kToolCall ? ReplyPart::kToolCall : ReplyPart::kSpeech, rest, events);
  }
  label_.clear();
  thought_space_.clear();
  thought_started_ = false;
  state_ = state;
}

}  // namespace octet
