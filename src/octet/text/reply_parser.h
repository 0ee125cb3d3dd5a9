// Splits the model's reply, token by token, into what it thinks, what it says and what it calls.
// Control tokens give the structure, bytes the content. Not for stop strings, and the content of a
// tool call is passed on raw. Invariants: the text of every event is valid UTF-8; a reply cut at
// any token gives the same joined text as the whole reply up to there.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/token.h"
#include "octet/text/stream_decoder.h"
#include "octet/text/tokenizer.h"

namespace octet {

enum class ReplyPart {
  kSpeech,
  kThinking,
  kToolCall,  // raw: "call:name{...}" with <|"|> spelled out
};

struct ReplyEvent {
  ReplyPart part = ReplyPart::kSpeech;
  std::string text;       // may be empty when `complete`
  bool complete = false;  // the thought or tool call ends here
};

class ReplyParser {
 public:
  explicit ReplyParser(std::shared_ptr<const Tokenizer> tokenizer);

  /// Appends what the token brings. Stop tokens bring nothing.
  void push(TokenId token, std::vector<ReplyEvent>& events);

  /// The end of the reply: what was held back. The parser is as new afterwards.
  void finish(std::vector<ReplyEvent>& events);

  ReplyPart part() const { return part_; }

 private:
  void push_control(TokenId token, std::vector<ReplyEvent>& events);
  void push_text(std::string_view bytes, std::vector<ReplyEvent>& events);
  void push_label(std::string_view bytes, std::vector<ReplyEvent>& events);
  void push_thought(std::string_view bytes, std::vector<ReplyEvent>& events);
  void emit(std::string text, std::vector<ReplyEvent>& events) const;
  void end_part(std::vector<ReplyEvent>& events);

  std::shared_ptr<const Tokenizer> tokenizer_;
  ReplyPart part_ = ReplyPart::kSpeech;
  bool in_label_ = false;         // just after the channel opened: its name is not complete
  std::string label_;             // what there is of the name
  bool thought_started_ = false;  // leading white space of a thought is dropped
  std::string thought_space_;     // white space that is dropped if the thought ends after it
  StreamDecoder decoder_;
};

}  // namespace octet
