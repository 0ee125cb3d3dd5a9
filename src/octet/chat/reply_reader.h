// The model's reply, token by token, as clients want it: thoughts, speech, and tool calls with
// arguments as JSON. Not for stop strings. Invariants: the deltas of a reply, joined by kind, do
// not depend on how tokens are grouped; the argument text of a finished call is one valid JSON
// object; no control token shows up in any text.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/token.h"
#include "octet/chat/tool_call_parser.h"
#include "octet/text/reply_parser.h"
#include "octet/text/tokenizer.h"

namespace octet {

enum class ReplyDeltaKind {
  kThinking,           // text of a thought
  kThinkingEnd,        // the thought ended properly
  kSpeech,             // text
  kToolCall,           // text is the name of the tool; the first delta of call `call`
  kToolCallArguments,  // text is the next part of the arguments, as JSON
  kToolCallEnd,        // `complete` says whether the model finished it
};

struct ReplyDelta {
  ReplyDeltaKind kind = ReplyDeltaKind::kSpeech;
  std::string text;
  int call = -1;  // index of the tool call, from 0
  bool complete = true;
};

class ReplyReader {
 public:
  /// `tool_names`: what may be called; a call of anything else is shown as speech. Empty: any name
  /// is accepted.
  ReplyReader(std::shared_ptr<const Tokenizer> tokenizer, std::vector<std::string> tool_names);

  /// A new reply that continues `prompt`: starts inside a thought, a call or speech as the prompt's
  /// tail has it.
  void start(std::span<const TokenId> prompt);

  /// Appends what the token brings. Throws Error(kInvalidArgument) for an id that is not in the
  /// vocabulary.
  void push(TokenId token, std::vector<ReplyDelta>& deltas);

  /// The end of the reply: closes what is open. An unfinished call gets its arguments closed to
  /// valid JSON and complete == false. The reader is as new afterwards.
  void finish(std::vector<ReplyDelta>& deltas);

  /// The next token would be part of a thought.
  bool thinking() const { return parser_.thinking(); }
  bool naming() const { return parser_.naming(); }
  /// The tokens so far end inside a character, which comes with a later one.
  bool inside_character() const { return parser_.inside_character(); }
  int calls() const { return calls_; }

 private:
  void take(const ReplyEvent& event, std::vector<ReplyDelta>& deltas);
  void take_call(const ReplyEvent& event, std::vector<ReplyDelta>& deltas);
  void show_call(const std::string& text, std::string arguments, std::vector<ReplyDelta>& deltas);
  void speak_call(std::string_view text, std::vector<ReplyDelta>& deltas);
  void end_call(bool closed, std::vector<ReplyDelta>& deltas);

  enum class Shown { kNothing, kCall, kSpeech };

  std::vector<std::string> tool_names_;
  ReplyParser parser_;
  std::vector<ReplyEvent> events_;
  ToolCallParser call_;
  bool in_call_ = false;
  Shown shown_ = Shown::kNothing;  // of the call
  std::string spoken_;             // of a call that is speech: what may begin a delimiter
  int calls_ = 0;
};

}  // namespace octet
