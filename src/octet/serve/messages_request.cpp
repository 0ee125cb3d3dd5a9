#include "octet/serve/messages_request.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/serve/api_error.h"
#include "octet/serve/chat_translation.h"
#include "octet/serve/thinking_fields.h"

namespace octet::serve {
namespace {

constexpr auto kNames = std::to_array<FieldName>(
    {{"stop", "stop_sequences"},
     {"response_format.json_schema", "output_config.format"},
     {"response_format", "output_config.format"},
     {"reasoning_effort", "output_config.effort"}}
);

/// Of a block of text. Citations say where a text is from, and templates have no place for them.
const std::vector<std::string_view> kTextMembers = {"type", "text", "cache_control", "citations"};

/// What a tool answered. That it failed is told in words: the templates have no other place for it.
std::string result_text(const Json& block, const std::string& place) {
  const Json content = block.contains("content") ? block["content"] : Json("");
  const std::string text = text_of_parts(content, place + ".content", {"text"});
  return block.value("is_error", Json(false)) == true ? "Error: " + text : text;
}

void add_user_block(const Json& block, const std::string& place, ChatTranslation& chat) {
  const std::string type = text_member(block, "type", place);
  if (type == "tool_result") {
    chat.expect_members(
        block, place, {"type", "tool_use_id", "content", "is_error", "cache_control"}
    );
    chat.expect_members(block.value("content", Json()), place + ".content", kTextMembers);
    chat.add_message(
        {{"role", "tool"},
         {"tool_call_id", text_member(block, "tool_use_id", place)},
         {"content", result_text(block, place)}}
    );
    return;
  }
  chat.expect_members(block, place, kTextMembers);
  const std::string text = text_of_part(block, place, {"text"});
  chat.add_message({{"role", "user"}, {"content", text}});
}

void add_assistant_block(const Json& block, const std::string& place, ChatTranslation& chat) {
  Json& message = chat.assistant();
  const std::string type = text_member(block, "type", place);
  if (type == "thinking") {
    chat.expect_members(block, place, {"type", "thinking", "signature"});
    append_text(message["reasoning_content"], text_member(block, "thinking", place));
  } else if (type == "tool_use") {
    chat.expect_members(block, place, {"type", "id", "name", "input", "cache_control"});
    Json call = {{"id", text_member(block, "id", place)}, {"type", "function"}};
    call["function"] = {
        {"name", text_member(block, "name", place)},
        {"arguments", block.value("input", Json::object())}};
    message["tool_calls"].push_back(std::move(call));
  } else {
    chat.expect_members(block, place, kTextMembers);
    append_text(message["content"], text_of_part(block, place, {"text"}));
  }
}

void add_message(const Json& message, const std::string& place, ChatTranslation& chat) {
  if (!message.is_object()) {
    refuse_field(place, "must be an object");
  }
  chat.expect_members(message, place, {"role", "content"});
  const std::string role = text_member(message, "role", place);
  const Json content = message.contains("content") ? message["content"] : Json();
  if (role != "user" && role != "assistant" && role != "system") {
    refuse_field(place + ".role", "expects user or assistant");
  }
  if (role == "system") {
    chat.expect_members(content, place + ".content", kTextMembers);
    chat.add_system(text_of_parts(content, place + ".content", {"text"}));
    return;
  }
  if (content.is_string()) {
    chat.add_message({{"role", role}, {"content", content}});
    return;
  }
  if (!content.is_array()) {
    refuse_field(place + ".content", "expects a string or an array of blocks");
  }
  if (content.size() > kMostMessages) {
    refuse_field(place + ".content", fmt::format("holds more than {} blocks", kMostMessages));
  }
  if (role == "assistant") {
    chat.add_message({{"role", role}, {"content", nullptr}});
  }
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string block = fmt::format("{}.content[{}]", place, i);
    if (!content[i].is_object()) {
      refuse_field(block, "must be an object");
    }
    if (role == "assistant") {
      add_assistant_block(content[i], block, chat);
    } else {
      add_user_block(content[i], block, chat);
    }
  }
}

void translate_messages(ChatTranslation& chat) {
  const Json system = chat.take("system");
  const Json messages = chat.take("messages");
  if (!system.is_null()) {
    chat.expect_members(system, "system", kTextMembers);
    chat.add_system(text_of_parts(system, "system", {"text"}));
  }
  if (!messages.is_array() || messages.empty() || messages.size() > kMostMessages) {
    refuse_field("messages", fmt::format("expects an array of 1 to {} messages", kMostMessages));
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    add_message(messages[i], fmt::format("messages[{}]", i), chat);
  }
  chat.finish_messages();
  if (chat.chat()["messages"].empty()) {
    refuse_field("messages", "hold no text");
  }
  if (chat.chat()["messages"].back()["role"] == "assistant") {
    chat.chat()["continue_final_message"] = true;
    chat.chat()["add_generation_prompt"] = false;
  }
}

void translate_tools(ChatTranslation& chat) {
  const Json tools = chat.take("tools");
  const Json choice = chat.take("tool_choice");
  if (!tools.is_null() && !tools.is_array()) {
    refuse_field("tools", "expects an array");
  }
  Json list = Json::array();
  for (size_t i = 0; i < tools.size(); ++i) {
    const std::string place = fmt::format("tools[{}]", i);
    const Json& tool = tools[i];
    if (!tool.is_object() || tool.value("type", Json("custom")) != "custom") {
      throw ApiError(place, place + " is no tool of the client, and there are no others here")
          .with_code("unsupported");
    }
    chat.expect_members(
        tool, place, {"type", "name", "description", "input_schema", "strict", "cache_control"}
    );
    list.push_back(function_tool(
        text_member(tool, "name", place),
        tool.value("description", Json()),
        tool.value("input_schema", Json()),
        tool.value("strict", Json())
    ));
  }
  if (!list.empty()) {
    chat.chat()["tools"] = std::move(list);
  }
  if (choice.is_null()) {
    return;
  }
  if (!choice.is_object()) {
    refuse_field("tool_choice", "expects an object");
  }
  RequestFields own(choice, "tool_choice.");
  const std::string type = own.text("type", 16).value_or("");
  const auto name = own.text("name", 1024);
  if (own.boolean("disable_parallel_tool_use").value_or(false)) {
    chat.chat()["parallel_tool_calls"] = false;
  }
  own.refuse_unread(true);
  Json& chosen = chat.chat()["tool_choice"];
  if (type == "tool" && name) {
    chosen = {{"type", "function"}};
    chosen["function"]["name"] = *name;
  } else if (type == "any") {
    chosen = "required";
  } else if (type == "auto" || type == "none") {
    chosen = type;
  } else {
    refuse_field("tool_choice.type", "expects auto, any, none, or tool with a name");
  }
}

/// In this API nobody thinks who was not told to.
void translate_thinking(ChatTranslation& chat) {
  Json& body = chat.chat();
  // A null is a field that was not given.
  const auto given = [&](const char* name) {
    const auto place = body.find(name);
    return place != body.end() && !place->is_null();
  };
  if (!given("thinking")) {
    body.erase("thinking");
  } else if (!body["thinking"].is_object()) {
    refuse_field("thinking", "expects an object");
  }
  bool told = std::ranges::any_of(kThinkingWishNames, given);
  for (const char* name : kThinkingBudgetNames) {
    told = told || given(name);
  }
  if (!told) {
    body["thinking"] = {{"type", "disabled"}};
  }
}

void translate_output(ChatTranslation& chat) {
  const Json config = chat.take("output_config");
  if (config.is_null()) {
    return;
  }
  if (!config.is_object()) {
    refuse_field("output_config", "expects an object");
  }
  RequestFields own(config, "output_config.");
  const Json* format = own.find("format");
  const auto effort = own.text("effort", 16);
  own.refuse_unread(true);
  const Json thinking = chat.chat().value("thinking", Json::object());
  // Effort is spent on thoughts, so it says nothing where there are none.
  if (effort && thinking.value("type", Json()) != "disabled") {
    chat.chat()["reasoning_effort"] = *effort == "max" ? "xhigh" : *effort;
  }
  if (format == nullptr) {
    return;
  }
  if (!format->is_object() || format->value("type", Json()) != "json_schema") {
    refuse_field("output_config.format", "expects {\"type\": \"json_schema\", \"schema\"}");
  }
  Json schema = *format;
  schema.erase("type");
  chat.chat()["response_format"] = {{"type", "json_schema"}};
  chat.chat()["response_format"]["json_schema"] = std::move(schema);
}

Json chat_body(const Json& body) {
  ChatTranslation chat(body);
  chat.refuse_foreign(
      {"n",
       "logprobs",
       "top_logprobs",
       "stop",
       "response_format",
       "max_completion_tokens",
       "parallel_tool_calls",
       "reasoning_key",
       "stream_options",
       "add_generation_prompt",
       "continue_final_message"}
  );
  for (const char* name : {"container", "mcp_servers", "context_management", "speed"}) {
    chat.refuse(name);
  }
  translate_messages(chat);
  translate_tools(chat);
  translate_thinking(chat);
  translate_output(chat);
  if (Json stops = chat.take("stop_sequences"); !stops.is_null() && !stops.empty()) {
    chat.chat()["stop"] = std::move(stops);
  }
  // Prompts are always kept, and nothing here leaves this machine.
  chat.drop({"metadata", "service_tier", "cache_control", "inference_geo", "diagnostics"});
  return std::move(chat.chat());
}

}  // namespace

GenerationRequest read_messages_request(const Json& body, const ServedModel& model) {
  try {
    GenerationRequest request = read_chat_request(chat_body(body), model);
    request.form = ReplyForm::kMessage;
    return request;
  } catch (ApiError& error) {
    rename_field(error, kNames);
    throw;
  }
}

Json count_message_tokens(const Json& body, const ServedModel& model) {
  try {
    const Json chat = chat_body(body);
    RequestFields fields(chat);
    return {{"input_tokens", read_chat_prompt(fields, model).tokens.size()}};
  } catch (ApiError& error) {
    rename_field(error, kNames);
    throw;
  }
}

}  // namespace octet::serve
