#include "octet/cli/reply_printer.h"

#include <utility>

#include <fmt/format.h>

namespace octet::cli {

ReplyPrinter::ReplyPrinter(
    const std::shared_ptr<const Tokenizer>& tokenizer,
    const PrintOptions& options,
    TextStream* stream
)
    : tokenizer_(*tokenizer),
      reader_(tokenizer, options.tool_names),
      speech_(options.stop_strings),
      thoughts_(options.thoughts),
      stream_(stream),
      folded_(stream != nullptr && options.thoughts == ThoughtView::kFold) {}

void ReplyPrinter::start(std::span<const TokenId> prompt) {
  reader_.start(prompt);
}

void ReplyPrinter::push(const EmittedToken& token) {
  if (token.token >= tokenizer_.vocabulary_size()) {
    return;  // a row of the head without a token of its own
  }
  origin_ = token.drafted ? TextStream::Origin::kDraft : TextStream::Origin::kTarget;
  if (reader_.thinking() && !tokenizer_.is_control(token.token)) {
    ++reply_.thinking_tokens;
    ++thought_tokens_;
  }
  reader_.push(token.token, read_);
  take_read();
}

Reply ReplyPrinter::finish() {
  reader_.finish(read_);
  take_read();
  if (in_thought_) {
    end_thought();
  }
  speak(speech_.finish());
  if (stream_ != nullptr) {
    stream_->end();
  }
  return std::move(reply_);
}

void ReplyPrinter::take_read() {
  for (const ReplyDelta& delta : read_) {
    take(delta);
  }
  read_.clear();
}

void ReplyPrinter::take(const ReplyDelta& delta) {
  switch (delta.kind) {
    case ReplyDeltaKind::kThinking:
      if (!in_thought_) {
        speak(speech_.finish());  // no stop string reaches across a thought
      }
      think(delta.text);
      break;
    case ReplyDeltaKind::kThinkingEnd:
      end_thought();
      break;
    case ReplyDeltaKind::kSpeech:
      speak(speech_.push(delta.text));
      break;
    case ReplyDeltaKind::kToolCall:
      speak(speech_.finish());
      reply_.calls.push_back({.name = delta.text, .arguments = {}});
      if (stream_ != nullptr) {
        stream_->fresh_line();
      }
      show("call " + delta.text + " ", TextStream::Part::kSpeech);
      break;
    case ReplyDeltaKind::kToolCallArguments:
      reply_.calls.back().arguments += delta.text;
      show(delta.text, TextStream::Part::kSpeech);
      break;
    case ReplyDeltaKind::kToolCallEnd:
      reply_.calls.back().complete = delta.complete;
      break;
  }
}

void ReplyPrinter::think(const std::string& text) {
  in_thought_ = true;
  reply_.thinking += text;
  if (thoughts_ == ThoughtView::kShow) {
    show(text, TextStream::Part::kThinking);
  } else if (thoughts_ == ThoughtView::kFold) {
    folded_.show(fmt::format("thinking: {} tokens", thought_tokens_));
  }
}

void ReplyPrinter::end_thought() {
  if (thoughts_ == ThoughtView::kFold && in_thought_) {
    folded_.clear();
    show(fmt::format("(thought for {} tokens)", thought_tokens_), TextStream::Part::kThinking);
  }
  if (thoughts_ != ThoughtView::kHide && in_thought_) {
    show("\n", TextStream::Part::kSpeech);
  }
  in_thought_ = false;
  thought_tokens_ = 0;
}

void ReplyPrinter::speak(const std::string& text) {
  reply_.speech += text;
  show(text, TextStream::Part::kSpeech);
}

void ReplyPrinter::show(std::string_view text, TextStream::Part part) {
  if (stream_ != nullptr) {
    stream_->write(text, origin_, part);
  }
}

}  // namespace octet::cli
