// One reply on the screen, token by token, and what it adds up to: thoughts, speech and calls, read
// as the server reads them. Shared by `octet run` and `octet chat`. Knows neither engine nor
// prompts' text. Invariant: what is printed never influences what is generated.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "octet/base/token.h"
#include "octet/chat/reply_reader.h"
#include "octet/chat/speech_filter.h"
#include "octet/cli/options.h"
#include "octet/cli/terminal.h"
#include "octet/engine/generate.h"
#include "octet/text/tokenizer.h"

namespace octet::cli {

struct ToolCall {
  std::string name;
  std::string arguments;  // the text of one JSON object
  bool complete = true;   // the model finished it
};

struct Reply {
  GenerateResult result;
  std::string speech;  // without thoughts, calls and control tokens
  std::string thinking;
  int64_t thinking_tokens = 0;
  std::vector<ToolCall> calls;
};

struct PrintOptions {
  /// What may be called; a call of anything else is speech. Empty: any name is a call.
  std::vector<std::string> tool_names;
  std::vector<std::string> stop_strings;
  ThoughtView thoughts = ThoughtView::kShow;
};

class ReplyPrinter {
 public:
  /// `stream` null: nothing is printed. Both must outlive the printer.
  ReplyPrinter(
      const std::shared_ptr<const Tokenizer>& tokenizer,
      const PrintOptions& options,
      TextStream* stream
  );

  /// A reply that continues `prompt`.
  void start(std::span<const TokenId> prompt);
  void push(const EmittedToken& token);
  /// The reply is over; all but its result.
  Reply finish();

 private:
  void take_read();
  void take(const ReplyDelta& delta);
  void think(const std::string& text);
  void end_thought();
  void speak(const std::string& text);
  void show(std::string_view text, TextStream::Part part);

  const Tokenizer& tokenizer_;
  ReplyReader reader_;
  SpeechFilter speech_;
  ThoughtView thoughts_;
  TextStream* stream_;
  Progress folded_;  // the running count of a folded thought
  TextStream::Origin origin_ = TextStream::Origin::kTarget;
  bool in_thought_ = false;
  int64_t thought_tokens_ = 0;  // of the present thought
  std::vector<ReplyDelta> read_;
  Reply reply_;
};

}  // namespace octet::cli
