#include "octet/serve/reply_constraints.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/base/error.h"
#include "octet/grammar/tool_signature.h"
#include "octet/serve/api_error.h"

namespace octet::serve {
namespace {

constexpr size_t kMostSourceBytes = 256 * 1024;

/// Compiles, and gives errors the field's name.
template <typename Compile>
std::shared_ptr<const Grammar> compiled(const std::string& field, Compile compile) {
  try {
    return compile();
  } catch (const Error& error) {
    throw ApiError(field, fmt::format("{}: {}", field, error.what()))
        .with_code(std::string(error_kind_name(error.kind())));
  }
}

std::shared_ptr<const Grammar> from_format(
    const Json& format, const ServedModel& model, ThoughtStart thought
) {
  const std::string name = "response_format";
  if (!format.is_object()) {
    throw ApiError(name, "response_format expects an object");
  }
  RequestFields own(format, name + ".");
  const std::string type = own.text("type", 64).value_or("");
  if (type == "text") {
    own.refuse_unread(true);
    return nullptr;
  }
  if (type == "json_object") {
    own.refuse_unread(true);
    return compiled(name, [&] { return model.grammars->json_object(thought); });
  }
  if (type != "json_schema") {
    throw ApiError(name + ".type", "response_format.type expects text, json_object or json_schema");
  }
  const Json* wrapper = own.find("json_schema");
  own.refuse_unread(true);
  const Json* schema = nullptr;
  if (wrapper != nullptr && wrapper->is_object()) {
    RequestFields inner(*wrapper, name + ".json_schema.");
    schema = inner.find("schema");
    inner.text("name", 256);
    inner.text("description", 65536);
    inner.boolean("strict");
    inner.refuse_unread(true);
  }
  if (schema == nullptr || !schema->is_object()) {
    throw ApiError(
        name + ".json_schema.schema", "response_format.json_schema.schema expects an object"
    );
  }
  return compiled(name, [&] { return model.grammars->json_schema(*schema, thought); });
}

/// choice, regex, grammar and a schema under whatever name it goes there.
std::shared_ptr<const Grammar> from_sources(
    RequestFields& fields, const ServedModel& model, ThoughtStart thought, const char* schema_name
) {
  std::vector<std::shared_ptr<const Grammar>> found;
  if (const auto choices = fields.texts("choice", 1000)) {
    found.push_back(compiled(fields.name_of("choice"), [&] {
      return model.grammars->choice(*choices, thought);
    }));
  }
  if (const auto regex = fields.text("regex", kMostSourceBytes)) {
    found.push_back(compiled(fields.name_of("regex"), [&] {
      return model.grammars->regex(*regex, thought);
    }));
  }
  for (const char* name : {"grammar", "ebnf"}) {
    if (const auto ebnf = fields.text(name, kMostSourceBytes)) {
      found.push_back(compiled(fields.name_of(name), [&] {
        return model.grammars->ebnf(*ebnf, thought);
      }));
    }
  }
  if (const Json* schema = fields.find(schema_name)) {
    found.push_back(compiled(fields.name_of(schema_name), [&] {
      return model.grammars->json_schema(*schema, thought);
    }));
  }
  if (found.size() > 1) {
    throw ApiError(
        fields.name_of("grammar"), "only one of choice, regex, grammar and a schema may be given"
    );
  }
  return found.empty() ? nullptr : found.front();
}

[[noreturn]] void refuse_choice() {
  throw ApiError(
      "tool_choice", "tool_choice expects auto, none, required, a function or allowed_tools"
  );
}

/// The name in {"type": "function", "function": {"name"}}.
std::optional<std::string> function_name(const Json& choice) {
  const bool named = choice.is_object() && choice.contains("function") &&
                     choice["function"].is_object() && choice["function"].contains("name") &&
                     choice["function"]["name"].is_string();
  return named ? std::optional(choice["function"]["name"].get<std::string>()) : std::nullopt;
}

void check_tool(const std::string& name, const GenerationRequest& request) {
  if (std::ranges::find(request.tool_names, name) == request.tool_names.end()) {
    throw ApiError("tool_choice", fmt::format("there is no tool '{}'", name));
  }
}

/// {"type": "allowed_tools", "allowed_tools": {"mode", "tools"}}: the prompt tells of all tools,
/// and these may be called. Returns the mode.
std::string allowed_tools(const Json& choice, GenerationRequest& request) {
  const bool known = choice.is_object() && choice.value("type", Json()) == "allowed_tools" &&
                     choice.contains("allowed_tools") && choice["allowed_tools"].is_object() &&
                     choice["allowed_tools"].contains("tools") &&
                     choice["allowed_tools"]["tools"].is_array();
  if (!known) {
    refuse_choice();
  }
  const Json& allowed = choice["allowed_tools"];
  const Json mode = allowed.value("mode", Json("auto"));
  std::vector<std::string> names;
  for (const Json& tool : allowed["tools"]) {
    const auto name = function_name(tool);
    if (!name) {
      refuse_choice();
    }
    check_tool(*name, request);
    names.push_back(*name);
  }
  if (names.empty() || (mode != "auto" && mode != "required")) {
    throw ApiError(
        "tool_choice", "allowed_tools expects the mode auto or required, and at least one tool"
    );
  }
  request.tool_names = std::move(names);
  return mode.get<std::string>();
}

}  // namespace

ThoughtStart thought_of(const ChatPrompt& prompt, const ServedModel& model) {
  const ChatTokens& tokens = model.tokenizer->chat_tokens();
  for (auto token = prompt.tokens.rbegin(); token != prompt.tokens.rend(); ++token) {
    if (*token == tokens.channel_open) {
      return ThoughtStart::kOpen;
    }
    if (*token == tokens.channel_close || *token == tokens.turn_open) {
      break;
    }
  }
  return prompt.thinking.value_or(true) ? ThoughtStart::kMayOpen : ThoughtStart::kNone;
}

std::shared_ptr<const Grammar> read_constraint(
    RequestFields& fields, const ServedModel& model, ThoughtStart thought
) {
  std::shared_ptr<const Grammar> grammar = from_sources(fields, model, thought, "json_schema");
  const auto take = [&](std::shared_ptr<const Grammar> other, const char* name) {
    if (other != nullptr && grammar != nullptr) {
      throw ApiError(name, fmt::format("{} contradicts another format of this request", name));
    }
    grammar = other != nullptr ? std::move(other) : std::move(grammar);
  };
  if (const Json* format = fields.find("response_format")) {
    take(from_format(*format, model, thought), "response_format");
  }
  if (const Json* outputs = fields.find("structured_outputs")) {
    if (!outputs->is_object()) {
      throw ApiError("structured_outputs", "structured_outputs expects an object");
    }
    RequestFields own(*outputs, "structured_outputs.");
    take(from_sources(own, model, thought, "json"), "structured_outputs");
    own.refuse_unread(true);
  }
  return grammar;
}

std::string read_tools(RequestFields& fields, const Json* tools, GenerationRequest& request) {
  const Json* choice = fields.find("tool_choice");
  request.parallel_tool_calls = fields.boolean("parallel_tool_calls").value_or(true);
  for (size_t i = 0; tools != nullptr && i < tools->size(); ++i) {
    request.tool_names.push_back((*tools)[i]["function"]["name"].get<std::string>());
  }
  std::string chosen = "auto";
  if (choice != nullptr && choice->is_string()) {
    chosen = choice->get<std::string>();
  } else if (const auto name = choice != nullptr ? function_name(*choice) : std::nullopt) {
    check_tool(*name, request);
    chosen = "=" + *name;
  } else if (choice != nullptr) {
    chosen = allowed_tools(*choice, request);
  }
  if (chosen != "auto" && chosen != "none" && chosen != "required" && !chosen.starts_with('=')) {
    refuse_choice();
  }
  if (choice != nullptr && chosen != "none" && tools == nullptr) {
    throw ApiError("tool_choice", "tool_choice is given and there are no tools");
  }
  request.tools_allowed = tools != nullptr && chosen != "none";
  return chosen;
}

const Json* speech_schema(RequestFields& fields) {
  static const Json kAnyObject = {{"type", "object"}};
  const Json* format = fields.find("response_format");
  if (format == nullptr || (*format)["type"] == "text") {
    return nullptr;
  }
  return (*format)["type"] == "json_object" ? &kAnyObject : &(*format)["json_schema"]["schema"];
}

bool may_speak(const std::string& choice) {
  return choice == "auto" || choice == "none";
}

std::shared_ptr<const Grammar> tool_grammar(
    const ToolDemand& demand, const ServedModel& model, const GenerationRequest& request
) {
  if (!request.tools_allowed) {
    return nullptr;
  }
  const bool named = demand.choice.starts_with('=');
  ToolRules rules;
  bool strict = false;
  for (const Json& tool : *demand.tools) {
    ToolSignature signature = tool_signature(tool);
    const std::string& name = signature.name;
    const bool allowed =
        named ? name == demand.choice.substr(1)
              : std::ranges::find(request.tool_names, name) != request.tool_names.end();
    if (!allowed) {
      continue;
    }
    strict = strict || !signature.free_arguments;
    rules.tools.push_back(std::move(signature));
  }
  const bool demanded = !may_speak(demand.choice);
  const bool restricted = request.tool_names.size() < demand.tools->size();
  if (!demanded && !strict && !restricted && demand.speech == nullptr) {
    return nullptr;  // the model is free, and its calls are read as they come
  }
  rules.use = demanded ? ToolUse::kRequired : ToolUse::kAllowed;
  rules.parallel = request.parallel_tool_calls;
  rules.speech = demand.speech;
  return compiled("tools", [&] { return model.grammars->tool_calls(rules, demand.thought); });
}

}  // namespace octet::serve
