#include "octet/chat/reply_reader.h"

#include <algorithm>
#include <utility>

namespace octet {
ReplyReader::ReplyReader(
    std::shared_ptr<const Tokenizer> tokenizer, std::vector<std::string> tool_names
)
    : tool_names_(std::move(tool_names)), parser_(std::move(tokenizer)) {}

void ReplyReader::start(std::span<const TokenId> prompt) {
  parser_.start(prompt);
  in_call_ = false;
  spoken_.clear();
  calls_ = 0;
}

void ReplyReader::push(TokenId token, std::vector<ReplyDelta>& deltas) {
  events_.clear();
  parser_.push(token, events_);
  for (const ReplyEvent& event : events_) {
    take(event, deltas);
  }
}

void ReplyReader::finish(std::vector<ReplyDelta>& deltas) {
  events_.clear();
  parser_.finish(events_);
  for (const ReplyEvent& event : events_) {
    take(event, deltas);
  }
  end_call(false, deltas);
  calls_ = 0;
}

void ReplyReader::take(const ReplyEvent& event, std::vector<ReplyDelta>& deltas) {
  if (event.part == ReplyPart::kToolCall) {
    take_call(event, deltas);
    return;
  }
  end_call(false, deltas);
  const bool thought = event.part == ReplyPart::kThinking;
  if (!event.text.empty()) {
    deltas.push_back(
        {.kind = thought ? ReplyDeltaKind::kThinking : ReplyDeltaKind::kSpeech, .text = event.text}
    );
  }
  if (thought && event.complete) {
    deltas.push_back({.kind = ReplyDeltaKind::kThinkingEnd, .text = {}});
  }
}

void ReplyReader::take_call(const ReplyEvent& event, std::vector<ReplyDelta>& deltas) {
  if (!event.text.empty()) {
    if (!std::exchange(in_call_, true)) {
      call_ = ToolCallParser();
      shown_ = Shown::kNothing;
    }
    std::string arguments;
    call_.push(event.text, arguments);
    show_call(event.text, std::move(arguments), deltas);
  }
  if (event.complete || event.broken) {
    end_call(event.complete, deltas);
  }
}

/// Gives out what is new of the call: its name, arguments, or all of it as speech when it is none.
void ReplyReader::show_call(
    const std::string& text, std::string arguments, std::vector<ReplyDelta>& deltas
) {
  if (shown_ == Shown::kNothing) {
    const bool known =
        tool_names_.empty() ||
        std::find(tool_names_.begin(), tool_names_.end(), call_.name()) != tool_names_.end();
    if (call_.failed() || (call_.has_name() && !known)) {
      shown_ = Shown::kSpeech;
      speak_call(call_.raw(), deltas);
      return;
    }
    if (!call_.has_name()) {
      return;
    }
    shown_ = Shown::kCall;
    deltas.push_back({.kind = ReplyDeltaKind::kToolCall, .text = call_.name(), .call = calls_++});
  }
  if (shown_ == Shown::kSpeech) {
    speak_call(text, deltas);
  } else if (!arguments.empty()) {
    deltas.push_back(
        {.kind = ReplyDeltaKind::kToolCallArguments,
         .text = std::move(arguments),
         .call = calls_ - 1}
    );
  }
}

/// A call that is none, as text: the delimiter of its strings, the one control token inside calls,
/// becomes a quote, wherever the text is cut.
void ReplyReader::speak_call(std::string_view text, std::vector<ReplyDelta>& deltas) {
  spoken_ += text;
  std::string out;
  for (size_t at = spoken_.find(kStringDelimiter); at != std::string::npos;
       at = spoken_.find(kStringDelimiter)) {
    out.append(spoken_, 0, at);
    out += '"';
    spoken_.erase(0, at + kStringDelimiter.size());
  }
  size_t begun =
      std::min(spoken_.size(), kStringDelimiter.size() - 1);  // bytes of one that may follow
  while (!spoken_.ends_with(kStringDelimiter.substr(0, begun))) {
    --begun;
  }
  out.append(spoken_, 0, spoken_.size() - begun);
  spoken_.erase(0, spoken_.size() - begun);
  if (!out.empty()) {
    deltas.push_back({.kind = ReplyDeltaKind::kSpeech, .text = std::move(out)});
  }
}

void ReplyReader::end_call(bool closed, std::vector<ReplyDelta>& deltas) {
  if (!std::exchange(in_call_, false)) {
    return;
  }
  std::string arguments;
  const bool complete = call_.finish(arguments) && closed;
  if (shown_ == Shown::kNothing) {
    speak_call(call_.raw(), deltas);
  }
  if (!spoken_.empty()) {
    deltas.push_back(
        {.kind = ReplyDeltaKind::kSpeech, .text = std::exchange(spoken_, std::string())}
    );
  }
  if (shown_ == Shown::kCall) {
    if (!arguments.empty()) {
      deltas.push_back(
          {.kind = ReplyDeltaKind::kToolCallArguments,
           .text = std::move(arguments),
           .call = calls_ - 1}
      );
    }
    deltas.push_back(
        {.kind = ReplyDeltaKind::kToolCallEnd, .text = {}, .call = calls_ - 1, .complete = complete}
    );
  }
}

}  // namespace octet
