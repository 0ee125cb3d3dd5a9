#include "octet/chat/messages.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/base/error.h"
#include "octet/base/utf8.h"
#include "octet/chat/bounded_json.h"
#include "octet/chat/json_value.h"

namespace octet {
namespace {

constexpr size_t kMostCalls = 256;  // of one message

using Json = nlohmann::ordered_json;
using jinja::Entry;
using jinja::Origin;
using jinja::Value;

constexpr std::array<std::string_view, 5> kRoles = {
    "system", "developer", "user", "assistant", "tool"};

Error invalid(size_t message, const std::string& what) {
  return {ErrorKind::kInvalidArgument, fmt::format("messages[{}]{}", message, what)};
}

const Json* member(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string part_text(const Json& part, size_t message, size_t index) {
  const Json* type = part.is_object() ? member(part, "type") : nullptr;
  if (type == nullptr || !type->is_string()) {
    throw invalid(message, fmt::format(".content[{}] must be an object with a type", index));
  }
  const auto& name = type->get_ref<const std::string&>();
  const bool refusal = name == "refusal";
  if (name != "text" && name != "input_text" && name != "output_text" && !refusal) {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format(
            "messages[{}].content[{}] has the type '{}', and this model reads text only",
            message,
            index,
            replace_invalid_utf8(name)
        )
    );
  }
  const Json* text = member(part, refusal ? "refusal" : "text");
  if (text == nullptr || !text->is_string()) {
    throw invalid(message, fmt::format(".content[{}] has no text", index));
  }
  return text->get<std::string>();
}

/// Nothing when there is no content.
std::optional<std::string> content_text(const Json& message, size_t index) {
  const Json* content = member(message, "content");
  if (content == nullptr) {
    return std::nullopt;
  }
  if (content->is_string()) {
    return content->get<std::string>();
  }
  if (!content->is_array()) {
    throw invalid(index, ".content must be a string, null or an array of parts");
  }
  std::string text;
  for (size_t i = 0; i < content->size(); ++i) {
    text.append(part_text((*content)[i], index, i));
  }
  return text;
}

Value arguments_value(const Json& function, size_t message, size_t call) {
  const Json* arguments = member(function, "arguments");
  if (arguments == nullptr) {
    return Value::dict({});
  }
  if (arguments->is_object()) {
    return caller_value(*arguments);
  }
  const std::string place = fmt::format(".tool_calls[{}].function.arguments", call);
  if (!arguments->is_string()) {
    throw invalid(message, place + " must be JSON text");
  }
  const auto& text = arguments->get_ref<const std::string&>();
  if (text.empty()) {
    return Value::dict({});
  }
  const auto fault = json_fault(text);
  if (fault && !fault->syntax) {
    throw invalid(message, place + " " + fault->what);
  }
  const Json parsed = fault ? Json() : Json::parse(text);
  if (!parsed.is_object()) {
    throw invalid(message, place + " must be the text of a JSON object");
  }
  return caller_value(parsed);
}

Value calls_value(const Json& calls, size_t message) {
  if (!calls.is_array()) {
    throw invalid(message, ".tool_calls must be an array");
  }
  if (calls.size() > kMostCalls) {
    throw invalid(
        message, fmt::format(".tool_calls has {} calls, at most {}", calls.size(), kMostCalls)
    );
  }
  jinja::Values out;
  for (size_t i = 0; i < calls.size(); ++i) {
    const Json* function = calls[i].is_object() ? member(calls[i], "function") : nullptr;
    const Json* name =
        function != nullptr && function->is_object() ? member(*function, "name") : nullptr;
    if (name == nullptr || !name->is_string()) {
      throw invalid(message, fmt::format(".tool_calls[{}].function must have a name", i));
    }
    const Json* id = member(calls[i], "id");
    std::vector<Entry> entries;
    if (id != nullptr) {
      entries.emplace_back(Value::text("id"), caller_value(*id));
    }
    entries.emplace_back(Value::text("type"), Value::text("function"));
    entries.emplace_back(
        Value::text("function"),
        Value::dict(
            {{Value::text("name"), caller_value(*name)},
             {Value::text("arguments"), arguments_value(*function, message, i)}}
        )
    );
    out.push_back(Value::dict(std::move(entries)));
  }
  return Value::list(std::move(out));
}

/// The names of the tools that were called so far, by the calls' ids.
class CalledNames {
 public:
  /// Of one message of the assistant, checked before. A later message's ids replace earlier ones;
  /// within a message the first call with an id keeps it.
  void add(const Json& calls) {
    for (size_t i = calls.size(); i-- > 0;) {
      const Json* id = member(calls[i], "id");
      if (id != nullptr && id->is_string()) {
        names_[id->get_ref<const std::string&>()] = member(calls[i]["function"], "name");
      }
    }
  }
  /// Null: none has this id.
  const Json* find(const Json& id) const {
    const auto found =
        id.is_string() ? names_.find(id.get_ref<const std::string&>()) : names_.end();
    return found == names_.end() ? nullptr : found->second;
  }

 private:
  std::unordered_map<std::string, const Json*> names_;
};

/// Reads the messages in their order.
class MessageReader {
 public:
  MessageReader(const Json& messages, std::string_view appended)
      : messages_(messages), appended_(appended) {}

  Value message(size_t index) {
    const Json& message = messages_[index];
    const std::string_view role = role_of(index);
    std::vector<Entry> entries;
    // A role is one of a fixed set, so templates may build control tokens around it.
    entries.emplace_back(Value::text("role"), Value::text(role));
    std::optional<std::string> content = content_text(message, index);
    if (!appended_.empty() && index + 1 == messages_.size()) {
      content = content.value_or("").append(appended_);
    }
    if (content) {
      entries.emplace_back(Value::text("content"), caller_text(*content));
    } else if (role == "user" || role == "tool") {
      throw invalid(index, " has no content");
    } else {
      entries.emplace_back(Value::text("content"), Value());
    }
    if (role == "assistant") {
      add_assistant(message, index, entries);
    }
    add_names(message, index, role, entries);
    return Value::dict(std::move(entries));
  }

  std::string_view role_of(size_t index) const {
    const Json& message = messages_[index];
    const Json* role = message.is_object() ? member(message, "role") : nullptr;
    if (role == nullptr || !role->is_string()) {
      throw invalid(index, " must be an object with a role");
    }
    const auto* found =
        std::find(kRoles.begin(), kRoles.end(), role->get_ref<const std::string&>());
    if (found == kRoles.end()) {
      throw invalid(
          index,
          fmt::format(
              ".role is '{}'; expected system, developer, user, assistant or tool",
              replace_invalid_utf8(role->get_ref<const std::string&>())
          )
      );
    }
    return *found;
  }

 private:
  static Value caller_text(const std::string& text) {
    return Value::text(replace_invalid_utf8(text), Origin::kCaller);
  }

  void add_assistant(const Json& message, size_t index, std::vector<Entry>& entries) {
    const Json* thought = member(message, "reasoning_content");
    thought = thought != nullptr ? thought : member(message, "reasoning");
    if (thought != nullptr) {
      if (!thought->is_string()) {
        throw invalid(index, ".reasoning_content must be a string");
      }
      const Value text = caller_value(*thought);
      entries.emplace_back(Value::text("reasoning_content"), text);
      entries.emplace_back(Value::text("reasoning"), text);
    }
    if (const Json* calls = member(message, "tool_calls"); calls != nullptr && !calls->empty()) {
      entries.emplace_back(Value::text("tool_calls"), calls_value(*calls, index));
      called_names_.add(*calls);
    }
  }

  void add_names(
      const Json& message, size_t index, std::string_view role, std::vector<Entry>& entries
  ) const {
    const Json* id = member(message, "tool_call_id");
    const Json* name = member(message, "name");
    if (role == "tool" && name == nullptr && id != nullptr) {
      name = called_names_.find(*id);
    }
    if (name != nullptr) {
      if (!name->is_string()) {
        throw invalid(index, ".name must be a string");
      }
      entries.emplace_back(Value::text("name"), caller_value(*name));
    }
    if (id != nullptr) {
      entries.emplace_back(Value::text("tool_call_id"), caller_value(*id));
    }
  }

  const Json& messages_;
  std::string_view appended_;
  CalledNames called_names_;
};

}  // namespace

jinja::Value template_messages(const nlohmann::ordered_json& messages, std::string_view appended) {
  if (!messages.is_array()) {
    throw Error(ErrorKind::kInvalidArgument, "messages must be an array");
  }
  MessageReader reader(messages, appended);
  if (!appended.empty() &&
      (messages.empty() || reader.role_of(messages.size() - 1) != "assistant")) {
    throw Error(
        ErrorKind::kInvalidArgument, "only a last message of the assistant can be continued"
    );
  }
  jinja::Values out;
  for (size_t i = 0; i < messages.size(); ++i) {
    out.push_back(reader.message(i));
  }
  return Value::list(std::move(out));
}

}  // namespace octet
