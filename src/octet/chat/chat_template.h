// Messages to a prompt, by the template that the model's files carry or by a built-in one. Not for
// replies (reply_reader.h). Invariant: what a caller says (contents, names, arguments, tools,
// template arguments) is always in plain spans, so it can never become a control token; control
// tokens come from the template's own text alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "octet/base/token.h"
#include "octet/tensor/checkpoint.h"
#include "octet/text/tokenizer.h"

namespace octet {

/// A request as the template sees it. Borrowed JSON, in OpenAI's form.
struct ChatInput {
  /// Array of {role, content, ...}. Content: a string, null, or parts of which only text is
  /// supported. Arguments of tool calls may be JSON text or an object.
  const nlohmann::ordered_json* messages = nullptr;
  /// Array of tools; null pointer or JSON null: none.
  const nlohmann::ordered_json* tools = nullptr;
  /// Further variables of the template: an object ("enable_thinking", "thinking_token_budget",
  /// "conversational_mode", ...); null pointer or JSON null: none.
  const nlohmann::ordered_json* arguments = nullptr;
  /// End with the opened turn of the model.
  bool open_reply = true;
  /// The last message is the assistant's and unfinished: the prompt ends inside it, and the reply
  /// continues it.
  bool continue_last_message = false;
};

/// Limits on a rendering; what goes beyond is an Error(kResourceExhausted).
struct ChatTemplateLimits {
  int64_t max_steps = 20'000'000;  // nodes of the template evaluated
  int64_t max_output_bytes = 64 << 20;
  int64_t max_source_bytes = 1 << 20;
};

enum class BuiltinTemplate {
  kBolt,    // Nemotron 3.5 Bolt: speech before tool calls, thinking unless told otherwise
  kGemma4,  // Gemma 4 E2B/E4B: tool calls before speech, thinking only when asked for
};

class ChatTemplate {
 public:
  /// Compiles a Jinja template. `origin` says where it is from, for messages and reports. Throws
  /// Error(kMalformed) with line and column.
  ChatTemplate(std::string source, std::string origin, ChatTemplateLimits limits = {});
  explicit ChatTemplate(BuiltinTemplate builtin);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  const std::string& source() const;
  const std::string& origin() const;

  /// The prompt as spans. `tokenizer` gives the spelling of bos_token and eos_token. Throws
  /// Error(kInvalidArgument) for messages of another form or that the template refuses,
  /// Error(kUnsupported) for parts that are not text.
  std::vector<TextSpan> render(const Tokenizer& tokenizer, const ChatInput& input) const;

  /// Whether it asks for thoughts where no enable_thinking is given. True also where that changes
  /// nothing: the model does as it likes.
  bool thinks_by_default(const Tokenizer& tokenizer) const;

  /// The prompt as ids, with exactly one BOS at the start.
  std::vector<TokenId> encode(const Tokenizer& tokenizer, const ChatInput& input) const;

 private:
  struct Compiled;
  std::unique_ptr<const Compiled> compiled_;
};

/// The template of a model. `choice`: "bolt" or "gemma4", a built-in one, or a file; empty:
/// "tokenizer.chat_template" of the metadata, else the sidecar "chat_template.jinja", else
/// "chat_template" in the sidecar "tokenizer_config.json"; without any, the built-in one for Bolt.
/// Throws Error for a file that cannot be read or is no template.
ChatTemplate load_chat_template(const Checkpoint& checkpoint, const std::string& choice = {});

}  // namespace octet
