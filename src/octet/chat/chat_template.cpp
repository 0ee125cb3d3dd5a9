#include "octet/chat/chat_template.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/base/error.h"
#include "octet/base/mapped_file.h"
#include "octet/chat/builtin_templates.h"
#include "octet/chat/json_value.h"
#include "octet/chat/messages.h"
#include "octet/jinja/template.h"

namespace octet {
namespace {

using jinja::Entry;
using jinja::Origin;
using jinja::Value;
using Json = nlohmann::ordered_json;

/// Put behind the text of a message that is to be continued, and found again in the prompt. Private
/// characters: no template does anything to them.
constexpr std::string_view kContinueHere = "\xF3\xB0\x80\x81octet continues here\xF3\xB0\x80\x82";

/// Variables that a request may not set, because they are not its to set.
constexpr std::array<std::string_view, 6> kReserved = {
    "messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token"};

std::string builtin_source(BuiltinTemplate builtin) {
  return fmt::format(
      "{}{}{}",
      kFirstMessageTemplate,
      builtin == BuiltinTemplate::kBolt ? kBoltTemplate : kGemma4Template,
      kTurnsTemplate
  );
}

std::string builtin_origin(BuiltinTemplate builtin) {
  return builtin == BuiltinTemplate::kBolt ? "built-in template for Bolt"
                                           : "built-in template for Gemma 4";
}

void check_tools(const Json& tools) {
  if (!tools.is_array()) {
    throw Error(ErrorKind::kInvalidArgument, "tools must be an array");
  }
  for (size_t i = 0; i < tools.size(); ++i) {
    const Json& tool = tools[i];
    const auto function = tool.is_object() ? tool.find("function") : tool.end();
    const Json& named = tool.is_object() && function != tool.end() ? *function : tool;
    const auto name = named.is_object() ? named.find("name") : named.end();
    if (!named.is_object() || name == named.end() || !name->is_string()) {
      throw Error(
          ErrorKind::kInvalidArgument, fmt::format("tools[{}].function must have a name", i)
      );
    }
    if (const auto parameters = named.find("parameters");
        parameters != named.end() && !parameters->is_object() && !parameters->is_null()) {
      throw Error(
          ErrorKind::kInvalidArgument,
          fmt::format("tools[{}].function.parameters must be a JSON Schema", i)
      );
    }
  }
}

Value token_text(const Tokenizer& tokenizer, TokenId token) {
  return Value::text(token == kNoToken ? std::string_view() : tokenizer.piece(token));
}

std::vector<Entry> variables_of(
    const Tokenizer& tokenizer, const ChatInput& input, std::string_view appended
) {
  if (input.messages == nullptr) {
    throw Error(ErrorKind::kInvalidArgument, "messages are missing");
  }
  std::vector<Entry> out;
  out.emplace_back(Value::text("messages"), template_messages(*input.messages, appended));
  const bool has_tools = input.tools != nullptr && !input.tools->is_null();
  if (has_tools) {
    check_tools(*input.tools);
  }
  out.emplace_back(
      Value::text("tools"),
      has_tools && !input.tools->empty() ? caller_value(*input.tools) : Value()
  );
  out.emplace_back(Value::text("documents"), Value());
  out.emplace_back(
      Value::text("add_generation_prompt"), Value::boolean(input.open_reply && appended.empty())
  );
  out.emplace_back(Value::text("bos_token"), token_text(tokenizer, tokenizer.bos()));
  out.emplace_back(Value::text("eos_token"), token_text(tokenizer, tokenizer.find("<eos>")));
  if (input.arguments != nullptr && !input.arguments->is_null()) {
    if (!input.arguments->is_object()) {
      throw Error(ErrorKind::kInvalidArgument, "chat_template_kwargs must be an object");
    }
    for (const auto& [name, value] : input.arguments->items()) {
      if (std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end()) {
        throw Error(
            ErrorKind::kInvalidArgument, fmt::format("chat_template_kwargs may not set '{}'", name)
        );
      }
      out.emplace_back(Value::text(name), caller_value(value));
    }
  }
  return out;
}

std::vector<TextSpan> spans_of(const jinja::Text& text) {
  std::vector<TextSpan> spans;
  size_t begin = 0;
  for (const jinja::Text::Run& run : text.runs()) {
    spans.push_back(
        {.text = text.bytes().substr(begin, run.end - begin),
         .special_tokens =
             run.origin == Origin::kTemplate ? SpecialTokens::kParse : SpecialTokens::kPlain}
    );
    begin = run.end;
  }
  return spans;
}

/// The template in a tokenizer_config.json: a string, or a list of {name, template}.
std::string configured_template(const std::string& path) {
  const Json config = Json::parse(read_whole_file(path), nullptr, false);
  if (!config.is_object() || !config.contains("chat_template")) {
    return {};
  }
  const Json& entry = config["chat_template"];
  if (entry.is_string()) {
    return entry.get<std::string>();
  }
  if (entry.is_array()) {
    for (const Json& one : entry) {
      if (one.is_object() && one.value("name", Json()) == "default" && one.contains("template") &&
          one["template"].is_string()) {
        return one["template"].get<std::string>();
      }
    }
  }
  return {};
}

}  // namespace

struct ChatTemplate::Compiled {
  std::string source;
  std::string origin;
  jinja::Template compiled;
  jinja::RenderLimits limits;
};

ChatTemplate::ChatTemplate(std::string source, std::string origin, ChatTemplateLimits limits) {
  if (static_cast<int64_t>(source.size()) > limits.max_source_bytes) {
    throw Error(
        ErrorKind::kResourceExhausted,
        fmt::format("{}: more than {} bytes", origin, limits.max_source_bytes)
    );
  }
  try {
    jinja::Template compiled(source);
    compiled_ = std::make_unique<const Compiled>(Compiled{
        .source = std::move(source),
        .origin = origin,
        .compiled = std::move(compiled),
        .limits = {.max_steps = limits.max_steps, .max_text_bytes = limits.max_output_bytes}});
  } catch (Error& error) {
    error.add_context(origin);
    throw;
  }
}

ChatTemplate::ChatTemplate(BuiltinTemplate builtin)
    : ChatTemplate(builtin_source(builtin), builtin_origin(builtin)) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

const std::string& ChatTemplate::source() const {
  return compiled_->source;
}
const std::string& ChatTemplate::origin() const {
  return compiled_->origin;
}

std::vector<TextSpan> ChatTemplate::render(const Tokenizer& tokenizer, const ChatInput& input)
    const {
  const std::string_view appended =
      input.continue_last_message ? kContinueHere : std::string_view();
  std::vector<Entry> variables = variables_of(tokenizer, input, appended);
  jinja::Text text;
  try {
    text = compiled_->compiled.render(std::move(variables), compiled_->limits);
  } catch (Error& error) {
    error.add_context(compiled_->origin);
    throw;
  }
  if (!appended.empty()) {
    const size_t end = text.bytes().rfind(appended);
    if (end == std::string::npos) {
      throw Error(
          ErrorKind::kUnsupported,
          fmt::format("{}: shows no message of the assistant that could be continued", origin())
      );
    }
    text = text.cut(0, end);
  }
  return spans_of(text);
}

bool ChatTemplate::thinks_by_default(const Tokenizer& tokenizer) const {
  Json messages = Json::array();
  messages.push_back({{"role", "user"}, {"content", "Hello."}});
  const auto rendered = [&](const Json& arguments) {
    ChatInput input;
    input.messages = &messages;
    input.arguments = &arguments;
    return encode(tokenizer, input);
  };
  try {
    const std::vector<TokenId> unsaid = rendered(Json::object());
    return unsaid != rendered({{"enable_thinking", false}}) ||
           unsaid == rendered({{"enable_thinking", true}});
  } catch (const Error&) {
    return true;  // a template that wants more than a greeting
  }
}

std::vector<TokenId> ChatTemplate::encode(const Tokenizer& tokenizer, const ChatInput& input)
    const {
  return tokenizer.with_bos(tokenizer.encode_spans(render(tokenizer, input)));
}

ChatTemplate load_chat_template(const Checkpoint& checkpoint, const std::string& choice) {
  if (choice == "bolt" || choice == "gemma4") {
    return ChatTemplate(choice == "bolt" ? BuiltinTemplate::kBolt : BuiltinTemplate::kGemma4);
  }
  if (!choice.empty()) {
    return ChatTemplate(read_whole_file(choice), choice);
  }
  if (const std::string* source = checkpoint.metadata.find_string("tokenizer.chat_template")) {
    return ChatTemplate(*source, checkpoint.path + ": tokenizer.chat_template");
  }
  if (const auto file = checkpoint.sidecars.find("chat_template.jinja");
      file != checkpoint.sidecars.end()) {
    return ChatTemplate(read_whole_file(file->second), file->second);
  }
  if (const auto file = checkpoint.sidecars.find("tokenizer_config.json");
      file != checkpoint.sidecars.end()) {
    std::string source = configured_template(file->second);
    if (!source.empty()) {
      return ChatTemplate(std::move(source), file->second + ": chat_template");
    }
  }
  return ChatTemplate(BuiltinTemplate::kBolt);
}

}  // namespace octet
