#include "octet/serve/responses_request.h"

#include <array>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/serve/api_error.h"
#include "octet/serve/chat_translation.h"

namespace octet::serve {
namespace {

constexpr auto kNames = std::to_array<FieldName>(
    {{"messages", "input"},
     {"max_completion_tokens", "max_output_tokens"},
     {"response_format.json_schema", "text.format"},
     {"response_format", "text.format"},
     {"reasoning_effort", "reasoning.effort"}}
);

/// One item of the input to messages. Reasoning, speech and calls that follow each other are one
/// message of the assistant.
void add_item(const Json& item, const std::string& place, ChatTranslation& chat) {
  if (!item.is_object()) {
    refuse_field(place, "must be an object");
  }
  const std::string type = item.contains("type") ? text_member(item, "type", place) : "message";
  if (type == "message") {
    chat.expect_members(item, place, {"type", "role", "content", "id", "status"});
    const std::string role = text_member(item, "role", place);
    const Json content = item.contains("content") ? item["content"] : Json();
    chat.expect_members(
        content, place + ".content", {"type", "text", "refusal", "annotations", "logprobs"}
    );
    const std::string text = text_of_parts(
        content, place + ".content", {"input_text", "output_text", "text", "refusal"}
    );
    if (role == "system" || role == "developer") {
      chat.add_system(text);
    } else if (role == "assistant") {
      append_text(chat.assistant()["content"], text);
    } else if (role == "user") {
      chat.add_message({{"role", "user"}, {"content", text}});
    } else {
      refuse_field(place + ".role", "expects system, developer, user or assistant");
    }
  } else if (type == "reasoning") {
    chat.expect_members(
        item, place, {"type", "id", "summary", "content", "encrypted_content", "status"}
    );
    const Json content =
        item.contains("content") && !item["content"].is_null() ? item["content"] : Json::array();
    chat.expect_members(content, place + ".content", {"type", "text"});
    append_text(
        chat.assistant()["reasoning_content"],
        text_of_parts(content, place + ".content", {"reasoning_text"})
    );
  } else if (type == "function_call") {
    chat.expect_members(item, place, {"type", "id", "call_id", "name", "arguments", "status"});
    Json call = {{"id", text_member(item, "call_id", place)}, {"type", "function"}};
    call["function"] = {
        {"name", text_member(item, "name", place)},
        {"arguments", text_member(item, "arguments", place)}};
    chat.assistant()["tool_calls"].push_back(std::move(call));
  } else if (type == "function_call_output") {
    const Json output = item.contains("output") ? item["output"] : Json();
    chat.expect_members(item, place, {"type", "id", "call_id", "output", "status"});
    chat.expect_members(output, place + ".output", {"type", "text"});
    chat.add_message(
        {{"role", "tool"},
         {"tool_call_id", text_member(item, "call_id", place)},
         {"content", text_of_parts(output, place + ".output", {"input_text", "output_text"})}}
    );
  } else {
    throw ApiError(
        place + ".type", fmt::format("{} has the type '{}', which is not supported", place, type)
    )
        .with_code("unsupported");
  }
}

void translate_input(ChatTranslation& chat) {
  const Json instructions = chat.take("instructions");
  const Json input = chat.take("input");
  if (!instructions.is_null()) {
    if (!instructions.is_string()) {
      refuse_field("instructions", "expects a string");
    }
    chat.add_system(instructions.get<std::string>());
  }
  if (input.is_string()) {
    chat.add_message({{"role", "user"}, {"content", input}});
  } else if (input.is_array() && !input.empty() && input.size() <= kMostMessages) {
    for (size_t i = 0; i < input.size(); ++i) {
      add_item(input[i], fmt::format("input[{}]", i), chat);
    }
  } else {
    refuse_field(
        "input", fmt::format("expects a string or an array of 1 to {} items", kMostMessages)
    );
  }
  chat.finish_messages();
}

/// {"type": "function", "name"} to chat's form of a choice.
Json named_choice(const Json& choice, const std::string& place, const ChatTranslation& chat) {
  if (!choice.is_object() || choice.value("type", Json()) != "function") {
    refuse_field(place, "expects functions of this request");
  }
  chat.expect_members(choice, place, {"type", "name"});
  Json named = {{"type", "function"}};
  named["function"]["name"] = text_member(choice, "name", place);
  return named;
}

void translate_tools(ChatTranslation& chat) {
  const Json tools = chat.take("tools");
  if (!tools.is_null()) {
    if (!tools.is_array()) {
      refuse_field("tools", "expects an array");
    }
    Json list = Json::array();
    for (size_t i = 0; i < tools.size(); ++i) {
      const std::string place = fmt::format("tools[{}]", i);
      const Json& tool = tools[i];
      if (!tool.is_object() || tool.value("type", Json()) != "function") {
        throw ApiError(place, place + " is no function, and there are no other tools here")
            .with_code("unsupported");
      }
      chat.expect_members(tool, place, {"type", "name", "description", "parameters", "strict"});
      list.push_back(function_tool(
          text_member(tool, "name", place),
          tool.value("description", Json()),
          tool.value("parameters", Json()),
          tool.value("strict", Json())
      ));
    }
    chat.chat()["tools"] = std::move(list);
  }
  const Json choice = chat.take("tool_choice");
  if (choice.is_object() && choice.value("type", Json()) == "allowed_tools") {
    chat.expect_members(choice, "tool_choice", {"type", "mode", "tools"});
    const Json allowed = choice.value("tools", Json::array());
    if (!allowed.is_array()) {
      refuse_field("tool_choice.tools", "expects an array");
    }
    Json list = Json::array();
    for (size_t i = 0; i < allowed.size(); ++i) {
      list.push_back(named_choice(allowed[i], fmt::format("tool_choice.tools[{}]", i), chat));
    }
    Json own = {{"mode", choice.value("mode", Json("auto"))}};
    own["tools"] = std::move(list);
    chat.chat()["tool_choice"] = {{"type", "allowed_tools"}};
    chat.chat()["tool_choice"]["allowed_tools"] = std::move(own);
  } else if (choice.is_object()) {
    chat.chat()["tool_choice"] = named_choice(choice, "tool_choice", chat);
  } else if (!choice.is_null() && !(tools.empty() && choice == "auto")) {
    chat.chat()["tool_choice"] = choice;
  }
}

void translate_format(ChatTranslation& chat) {
  const Json text = chat.take("text");
  if (text.is_null()) {
    return;
  }
  if (!text.is_object()) {
    refuse_field("text", "expects an object");
  }
  RequestFields own(text, "text.");
  const Json* format = own.find("format");
  if (own.text("verbosity", 16).value_or("medium") != "medium") {
    refuse_field("text.verbosity", "is not supported");
  }
  own.refuse_unread(true);
  if (format == nullptr) {
    return;
  }
  if (!format->is_object() || format->value("type", Json()) != "json_schema") {
    chat.chat()["response_format"] = *format;
    return;
  }
  Json schema = *format;
  schema.erase("type");
  chat.chat()["response_format"] = {{"type", "json_schema"}};
  chat.chat()["response_format"]["json_schema"] = std::move(schema);
}

void translate_reasoning(ChatTranslation& chat) {
  const Json reasoning = chat.take("reasoning");
  if (reasoning.is_null()) {
    return;
  }
  if (!reasoning.is_object()) {
    refuse_field("reasoning", "expects an object");
  }
  RequestFields own(reasoning, "reasoning.");
  if (const Json* effort = own.find("effort")) {
    chat.chat()["reasoning_effort"] = *effort;
  }
  for (const char* name : {"summary", "generate_summary"}) {
    if (own.text(name, 16).value_or("auto") != "auto") {
      refuse_field(own.name_of(name), "is not supported: thoughts are given as they are");
    }
  }
  own.refuse_unread(true);
}

/// What would need something stored here, and what only other servers have.
void refuse_what_is_not_here(ChatTranslation& chat) {
  chat.refuse_foreign(
      {"messages",
       "n",
       "logprobs",
       "response_format",
       "max_tokens",
       "max_completion_tokens",
       "reasoning_effort",
       "reasoning_key"}
  );
  for (const char* name :
       {"store",
        "background",
        "previous_response_id",
        "conversation",
        "prompt",
        "context_management",
        "max_tool_calls"}) {
    chat.refuse(name);
  }
  chat.refuse_unless("truncation", "disabled");
  chat.refuse_unless("top_logprobs", 0);
  const Json include = chat.take("include");
  for (const Json& entry : include) {
    // Thoughts are given in full, so nothing encrypted is needed to send them back.
    if (entry != "reasoning.encrypted_content") {
      refuse_field("include", fmt::format("does not support {}", entry.dump()));
    }
  }
  const Json options = chat.take("stream_options");
  if (options.is_object()) {
    RequestFields own(options, "stream_options.");
    own.boolean("include_obfuscation");
    own.refuse_unread(true);
  } else if (!options.is_null()) {
    refuse_field("stream_options", "expects an object");
  }
}

/// What the response repeats of its request.
Json echo_of(const Json& body) {
  const auto given = [&](const char* name, const Json& otherwise) {
    const auto place = body.find(name);
    return place == body.end() || place->is_null() ? otherwise : *place;
  };
  Json echo = {
      {"background", false},
      {"instructions", given("instructions", nullptr)},
      {"max_output_tokens", given("max_output_tokens", nullptr)},
      {"metadata", given("metadata", Json::object())},
      {"parallel_tool_calls", given("parallel_tool_calls", true)},
      {"previous_response_id", nullptr},
      {"reasoning", given("reasoning", Json::object())},
      {"store", false},
      {"temperature", given("temperature", nullptr)},
      {"text", given("text", Json::object())},
      {"tool_choice", given("tool_choice", "auto")},
      {"tools", given("tools", Json::array())},
      {"top_p", given("top_p", nullptr)},
      {"truncation", "disabled"},
      {"user", given("user", nullptr)}};
  if (!echo["text"].contains("format")) {
    echo["text"]["format"] = {{"type", "text"}};
  }
  for (const char* name : {"effort", "summary"}) {
    if (!echo["reasoning"].contains(name)) {
      echo["reasoning"][name] = nullptr;
    }
  }
  return echo;
}

}  // namespace

GenerationRequest read_responses_request(const Json& body, const ServedModel& model) {
  ChatTranslation chat(body);
  refuse_what_is_not_here(chat);
  translate_input(chat);
  translate_tools(chat);
  translate_format(chat);
  translate_reasoning(chat);
  if (Json most = chat.take("max_output_tokens"); !most.is_null()) {
    chat.chat()["max_completion_tokens"] = std::move(most);
  }
  chat.drop(
      {"metadata",
       "user",
       "safety_identifier",
       "service_tier",
       "prompt_cache_key",
       "prompt_cache_retention"}
  );
  try {
    GenerationRequest request = read_chat_request(chat.chat(), model);
    request.form = ReplyForm::kResponse;
    request.echo = std::make_shared<const Json>(echo_of(body));
    return request;
  } catch (ApiError& error) {
    rename_field(error, kNames);
    throw;
  }
}

}  // namespace octet::serve
