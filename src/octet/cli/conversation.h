// What was said in a talk, as messages in OpenAI's form: the one thing that the template needs to
// make the next prompt, and the one thing that is saved. Knows no engine and no screen. Invariant:
// the messages are whole turns: whatever fails half way is cut off again.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "octet/base/token.h"
#include "octet/chat/chat_format.h"
#include "octet/cli/reply_printer.h"

namespace octet::cli {

class Conversation {
 public:
  /// `system` empty: no system message.
  explicit Conversation(const std::string& system);
  ~Conversation();
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  /// Only the system message stays.
  void reset();
  /// Empty: none. What was said stays.
  void set_system(const std::string& text);
  std::string system() const;

  void add_user(const std::string& text);
  /// Its calls are kept when `with_calls`; they must then be answered before anything else is said.
  void add_reply(const Reply& reply, bool with_calls);
  /// Answers call `index` of the last reply.
  void add_answer(size_t index, const std::string& text);

  /// The number of messages, and back to one such number.
  size_t size() const;
  void cut(size_t size);
  /// Forgets the last message of the person and all behind it. Returns its text; nullopt: there
  /// is none.
  std::optional<std::string> undo();

  /// All messages as one JSON object, and back. Throws Error for what is none of that; then nothing
  /// has changed.
  std::string saved() const;
  void load(const std::string& text);

  /// The prompt of the next reply. Throws Error for what the template refuses.
  std::vector<TokenId> prompt(
      const ChatTemplate& chat,
      const Tokenizer& tokenizer,
      const nlohmann::ordered_json& tools,
      const ChatOptions& options
  ) const;

 private:
  std::unique_ptr<nlohmann::ordered_json> messages_;
  size_t replies_ = 0;  // with calls, for their ids
};

}  // namespace octet::cli
