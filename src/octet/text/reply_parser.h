// Splits the model's reply, token by token, into what it thinks, what it says and what it calls.
// Control tokens give the structure, bytes the content. Not for stop strings, and the content of a
// tool call is passed on raw. Invariants: the text of every event is valid UTF-8; control tokens
// never show up in it, except the string delimiter inside a tool call. Tolerates what models do:
// empty thoughts, doubled or stray channel tokens, channels of other names.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/token.h"
#include "octet/text/stream_decoder.h"
#include "octet/text/tokenizer.h"

namespace octet {

enum class ReplyPart {
  kSpeech,
  kThinking,  // without the label of its channel and without white space around it
  kToolCall,  // "call:name{...}", strings delimited by <|"|>
};

struct ReplyEvent {
  ReplyPart part = ReplyPart::kSpeech;
  std::string text;       // may be empty when complete
  bool complete = false;  // this thought or tool call has ended properly; never set for speech
  bool broken = false;    // this tool call was cut off by another control token; text is empty
};

class ReplyParser {
 public:
  explicit ReplyParser(std::shared_ptr<const Tokenizer> tokenizer);

  /// A new reply that continues `prompt`: in speech, a thought or a call, as the prompt's tail has
  /// it.
  void start(std::span<const TokenId> prompt);

  /// Appends what the token brings: nothing, one event or several. Throws Error(kInvalidArgument)
  /// for an id that is not in the vocabulary.
  void push(TokenId token, std::vector<ReplyEvent>& events);

  /// The end of the reply: appends what was held back. The parser is as new afterwards.
  void finish(std::vector<ReplyEvent>& events);

  /// A channel is open, so text is a thought (or the name of a channel).
  bool thinking() const { return state_ == State::kThinking || state_ == State::kLabel; }
  /// The name of a channel is being read.
  bool naming() const { return state_ == State::kLabel; }
  /// The tokens so far end inside a character, which comes with a later one.
  bool inside_character() const { return decoder_.held_bytes() > 0; }

 private:
  enum class State { kSpeech, kLabel, kThinking, kToolCall };

  void push_control(TokenId token, std::vector<ReplyEvent>& events);
  void push_text(std::string_view bytes, std::vector<ReplyEvent>& events);
  void push_label(std::string_view bytes, std::vector<ReplyEvent>& events);
  void push_thought(std::string_view text, std::vector<ReplyEvent>& events);
  void enter(State state, std::vector<ReplyEvent>& events);

  std::shared_ptr<const Tokenizer> tokenizer_;
  State state_ = State::kSpeech;
  StreamDecoder decoder_;
  std::string label_;          // what there is of a channel's name, in State::kLabel
  std::string thought_space_;  // white space of a thought that counts only if more follows
  bool thought_started_ = false;
};

}  // namespace octet
