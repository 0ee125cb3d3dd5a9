// Requests of the other two APIs become the same chat request that says the same.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "octet/serve/api_error.h"
#include "octet/serve/generation_request.h"
#include "octet/serve/messages_request.h"
#include "octet/serve/responses_request.h"
#include "octet/serve/text_routes.h"
#include "octet/serve/thinking_fields.h"
#include "support/request_seeds.h"
#include "support/served_model.h"

namespace octet::serve {
namespace {

using test::served_model;

const Json kParameters = Json::parse(
    R"({"type": "object", "properties": {"direction": {"type": "string", "enum": ["left", "up"]}}})"
);

/// A talk with a tool, in chat's form.
const Json kChat = Json::parse(R"({
  "messages": [
    {"role": "system", "content": "You are Robi."},
    {"role": "user", "content": "Look left."},
    {"role": "assistant", "content": "I look.", "reasoning_content": "Left it is.",
     "tool_calls": [{"id": "c1", "type": "function",
                     "function": {"name": "look_at", "arguments": "{\"direction\":\"left\"}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "done"},
    {"role": "user", "content": "And now?"}],
  "reasoning_effort": "none", "seed": 4, "max_tokens": 9, "temperature": 0.5, "stop": ["END"]})");

Json chat_with_tools() {
  Json body = kChat;
  body["tools"] = Json::array();
  body["tools"].push_back({{"type", "function"}});
  body["tools"][0]["function"] = {
      {"name", "look_at"}, {"description", "Turns."}, {"parameters", kParameters}};
  return body;
}

void expect_same(const GenerationRequest& a, const GenerationRequest& b) {
  EXPECT_EQ(a.prompts, b.prompts);
  EXPECT_EQ(a.generate.sampling.seed, b.generate.sampling.seed);
  EXPECT_EQ(a.generate.sampling.temperature, b.generate.sampling.temperature);
  EXPECT_EQ(a.generate.max_tokens, b.generate.max_tokens);
  EXPECT_EQ(a.generate.stop_strings, b.generate.stop_strings);
  EXPECT_EQ(a.tool_names, b.tool_names);
  EXPECT_EQ(a.thinking_budget, b.thinking_budget);
  EXPECT_EQ(a.generate.marks, b.generate.marks);
}

TEST(ServeTranslations, ResponsesSayWhatChatSays) {
  Json body = Json::parse(R"({
    "instructions": "You are Robi.",
    "input": [
      {"role": "user", "content": [{"type": "input_text", "text": "Look left."}]},
      {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Left it is."}]},
      {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
      {"type": "function_call", "call_id": "c1", "name": "look_at", "arguments": "{\"direction\":\"left\"}"},
      {"type": "function_call_output", "call_id": "c1", "output": "done"},
      {"role": "user", "content": "And now?"}],
    "reasoning": {"effort": "none"}, "seed": 4, "max_output_tokens": 9, "temperature": 0.5, "stop": "END"})"
  );
  body["tools"] = Json::array();
  body["tools"].push_back(
      {{"type", "function"},
       {"name", "look_at"},
       {"description", "Turns."},
       {"parameters", kParameters}}
  );
  const GenerationRequest request = read_responses_request(body, served_model());
  expect_same(request, read_chat_request(chat_with_tools(), served_model()));
  EXPECT_EQ(request.form, ReplyForm::kResponse);
  EXPECT_EQ((*request.echo)["instructions"], "You are Robi.");
  EXPECT_EQ((*request.echo)["tools"], body["tools"]);
}

TEST(ServeTranslations, MessagesSayWhatChatSays) {
  Json body = Json::parse(R"({
    "system": [{"type": "text", "text": "You are "}, {"type": "text", "text": "Robi."}],
    "messages": [
      {"role": "user", "content": "Look left."},
      {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "Left it is.", "signature": ""},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "c1", "name": "look_at", "input": {"direction": "left"}}]},
      {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "done"}]},
        {"type": "text", "text": "And now?"}]}],
    "seed": 4, "max_tokens": 9, "temperature": 0.5, "stop_sequences": ["END"]})");
  body["tools"] = Json::array();
  body["tools"].push_back(
      {{"name", "look_at"}, {"description", "Turns."}, {"input_schema", kParameters}}
  );
  const GenerationRequest request = read_messages_request(body, served_model());
  expect_same(request, read_chat_request(chat_with_tools(), served_model()));
  EXPECT_EQ(request.form, ReplyForm::kMessage);
  body.erase("max_tokens");
  EXPECT_EQ(count_message_tokens(body, served_model())["input_tokens"], request.prompts[0].size());
}

TEST(ServeTranslations, WhoIsToldToThinkThinks) {
  const Json messages = Json::array({Json{{"role", "user"}, {"content", "Hello."}}});
  const auto budget = [&](const Json& more) {
    Json body = {{"messages", messages}};
    body.update(more);
    return read_messages_request(body, served_model()).thinking_budget;
  };
  EXPECT_EQ(budget(Json::object()), 0);
  EXPECT_EQ(budget({{"thinking", {{"type", "disabled"}}}}), 0);
  EXPECT_EQ(budget({{"thinking", {{"type", "enabled"}, {"budget_tokens", 7}}}}), 7);
  EXPECT_EQ(budget({{"thinking", {{"type", "adaptive"}}}}), std::nullopt);
  EXPECT_EQ(
      budget({{"thinking", {{"type", "adaptive"}}}, {"output_config", {{"effort", "low"}}}}), 128
  );
  EXPECT_EQ(budget({{"output_config", {{"effort", "high"}}}}), 0);
  for (const char* name : kThinkingBudgetNames) {
    EXPECT_EQ(budget({{name, 5}}), 5) << name;
    EXPECT_THROW(budget({{name, 5}, {"thinking", {{"type", "disabled"}}}}), ApiError) << name;
  }
  for (const char* name :
       {"thinking", "reasoning_effort", "chat_template_kwargs", "thinking_budget"}) {
    EXPECT_EQ(budget({{name, nullptr}}), 0) << name << ": null is not given";
  }
  EXPECT_EQ(
      budget({{"thinking", nullptr}, {"thinking_budget", 9}, {"output_config", {{"effort", "low"}}}}
      ),
      9
  );
  EXPECT_THROW(budget({{"thinking", "x"}}), ApiError);
  EXPECT_THROW(budget({{"thinking", "x"}, {"output_config", {{"effort", "low"}}}}), ApiError);
}

TEST(ServeTranslations, AdaptiveThoughtsAreAskedFor) {
  ServedModel gemma = served_model();
  gemma.chat_template = std::make_shared<const ChatTemplate>(BuiltinTemplate::kGemma4);
  const auto prompt = [&](const Json& thinking) {
    const Json body = {
        {"messages", Json::array({Json{{"role", "user"}, {"content", "Hello."}}})},
        {"thinking", thinking}};
    return read_messages_request(body, gemma).prompts[0];
  };
  EXPECT_EQ(prompt({{"type", "adaptive"}}), prompt({{"type", "enabled"}}));
  EXPECT_NE(prompt({{"type", "adaptive"}}), prompt({{"type", "disabled"}}));
}

/// The field of the refusal when `where` is added to a body that is served.
template <typename Read>
std::string refused_member(Json body, const char* where, bool strict, Read read) {
  body["strict"] = strict;
  body[Json::json_pointer(where)] = "x";
  try {
    read(body);
  } catch (const ApiError& error) {
    return error.param();
  }
  return "accepted";
}

TEST(ServeTranslations, StrictLooksIntoItemsBlocksAndTools) {
  const Json messages = Json::parse(R"({
    "system": [{"type": "text", "text": "You are Robi.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
      {"role": "user", "content": [{"type": "text", "text": "Look."}]},
      {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "Left.", "signature": "s"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}]},
      {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "c1", "is_error": true,
         "content": [{"type": "text", "text": "done"}]}]}],
    "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object", "properties": {}}}]})"
  );
  const auto by_messages = [&](const char* where, bool strict) {
    return refused_member(messages, where, strict, [](const Json& body) {
      read_messages_request(body, served_model());
      count_message_tokens(body, served_model());
    });
  };
  EXPECT_EQ(by_messages("/messages/1/content/0/signature", true), "accepted");
  for (const auto& [where, field] : std::vector<std::pair<const char*, const char*>>{
           {"/system/0/mood", "system[0].mood"},
           {"/messages/0/mood", "messages[0].mood"},
           {"/messages/0/content/0/mood", "messages[0].content[0].mood"},
           {"/messages/1/content/0/mood", "messages[1].content[0].mood"},
           {"/messages/1/content/1/mood", "messages[1].content[1].mood"},
           {"/messages/1/content/2/mood", "messages[1].content[2].mood"},
           {"/messages/2/content/0/mood", "messages[2].content[0].mood"},
           {"/messages/2/content/0/content/0/mood", "messages[2].content[0].content[0].mood"},
           {"/tools/0/mood", "tools[0].mood"}}) {
    EXPECT_EQ(by_messages(where, true), field);
    EXPECT_EQ(by_messages(where, false), "accepted") << where;
  }
  const Json responses = Json::parse(R"({
    "input": [
      {"role": "user", "content": [{"type": "input_text", "text": "Look."}]},
      {"type": "reasoning", "id": "r", "summary": [],
       "content": [{"type": "reasoning_text", "text": "Left."}]},
      {"type": "function_call", "id": "i", "call_id": "c1", "name": "f", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "c1",
       "output": [{"type": "input_text", "text": "done"}]},
      {"role": "user", "content": "And now?"}],
    "tools": [{"type": "function", "name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}],
    "tool_choice": {"type": "allowed_tools", "mode": "auto",
                    "tools": [{"type": "function", "name": "f"}]}})");
  const auto by_responses = [&](const char* where, bool strict) {
    return refused_member(responses, where, strict, [](const Json& body) {
      read_responses_request(body, served_model());
    });
  };
  EXPECT_EQ(by_responses("/input/0/id", true), "accepted");
  for (const auto& [where, field] : std::vector<std::pair<const char*, const char*>>{
           {"/input/0/mood", "input[0].mood"},
           {"/input/0/content/0/mood", "input[0].content[0].mood"},
           {"/input/1/mood", "input[1].mood"},
           {"/input/1/content/0/mood", "input[1].content[0].mood"},
           {"/input/2/mood", "input[2].mood"},
           {"/input/3/mood", "input[3].mood"},
           {"/input/3/output/0/mood", "input[3].output[0].mood"},
           {"/tools/0/mood", "tools[0].mood"},
           {"/tool_choice/mood", "tool_choice.mood"},
           {"/tool_choice/tools/0/mood", "tool_choice.tools[0].mood"}}) {
    EXPECT_EQ(by_responses(where, true), field);
    EXPECT_EQ(by_responses(where, false), "accepted") << where;
  }
}

TEST(ServeTranslations, BodiesThatSayNothingAreRefusedByField) {
  struct Case {
    const char* body;
    const char* param;
  };
  for (const Case& bad : {
           Case{R"({"messages": [{"role": "user", "content": []}]})", "messages"},
           Case{R"({"messages": [{"role": "system", "content": ""}]})", "messages"},
       }) {
    for (const bool count : {false, true}) {
      try {
        const Json body = Json::parse(bad.body);
        count ? (void)count_message_tokens(body, served_model())
              : (void)read_messages_request(body, served_model());
        ADD_FAILURE() << bad.body;
      } catch (const ApiError& error) {
        EXPECT_EQ(error.param(), bad.param) << bad.body;
      }
    }
  }
  for (const char* tools : {R"("x")", "1", R"({"a": 1})"}) {
    const Json body = Json::parse(
        R"({"input": "x", "tool_choice": {"type": "allowed_tools", "tools": )" +
        std::string(tools) + "}}"
    );
    EXPECT_THROW(read_responses_request(body, served_model()), ApiError) << tools;
  }
}

TEST(ServeTranslations, SentencesNameTheClientsOwnFields) {
  const Json body = {{"input", "x"}, {"max_output_tokens", 0}};
  try {
    read_responses_request(body, served_model());
    FAIL();
  } catch (const ApiError& error) {
    EXPECT_EQ(error.param(), "max_output_tokens");
    EXPECT_EQ(std::string(error.what()).rfind("max_output_tokens ", 0), 0U) << error.what();
  }
}

TEST(ServeTranslations, AllowedToolsAreTheOnlyOnes) {
  Json body = chat_with_tools();
  body["tools"].push_back(body["tools"][0]);
  body["tools"][1]["function"]["name"] = "nod";
  body["tool_choice"] = Json::parse(
      R"({"type": "allowed_tools", "allowed_tools":
          {"mode": "auto", "tools": [{"type": "function", "function": {"name": "nod"}}]}})"
  );
  const GenerationRequest request = read_chat_request(body, served_model());
  EXPECT_EQ(request.tool_names, std::vector<std::string>{"nod"});
  EXPECT_NE(request.grammar, nullptr);
  const auto refused = [&](const char* pointer, const Json& value) {
    Json bad = body;
    bad["tool_choice"][Json::json_pointer(pointer)] = value;
    EXPECT_THROW(read_chat_request(bad, served_model()), ApiError) << pointer;
  };
  refused("/allowed_tools/mode", "never");
  refused("/allowed_tools/tools", Json::array());
  refused("/allowed_tools/tools/0/function/name", "fly");
  refused("/allowed_tools", 1);
  refused("/type", "custom");
}

TEST(ServeTranslations, FuzzingBeginsWithBodiesThatAreServed) {
  for (const auto& [route, text] : test::request_seeds()) {
    SCOPED_TRACE(route + " " + text);
    const Json body = parse_body(text);
    try {
      if (route == "/v1/chat/completions") {
        read_chat_request(body, served_model());
      } else if (route == "/v1/completions") {
        read_completion_request(body, served_model());
      } else if (route == "/v1/responses") {
        read_responses_request(body, served_model());
      } else if (route == "/v1/messages") {
        read_messages_request(body, served_model());
      } else if (route == "/v1/messages/count_tokens") {
        EXPECT_GT(count_message_tokens(body, served_model())["input_tokens"], 0);
      } else if (route == "/tokenize") {
        EXPECT_FALSE(tokenize_text(body, served_model())["tokens"].empty());
      } else if (route == "/detokenize") {
        EXPECT_TRUE(detokenize_text(body, served_model())["content"].is_string());
      } else {
        EXPECT_TRUE(render_prompt(body, served_model())["prompt"].is_string());
      }
    } catch (const ApiError& error) {
      ADD_FAILURE() << error.param() << ": " << error.what();
    }
  }
}

TEST(ServeTranslations, ErrorsHaveTheFormOfTheirApi) {
  const ApiError error("messages", "messages are missing");
  const Json openai = Json::parse(error.body(error_form_of("/v1/responses")));
  EXPECT_EQ(openai["error"]["param"], "messages");
  EXPECT_EQ(openai["error"]["code"], nullptr);
  const Json anthropic = Json::parse(error.body(error_form_of("/v1/messages/count_tokens")));
  EXPECT_EQ(anthropic["type"], "error");
  EXPECT_EQ(anthropic["error"]["type"], "invalid_request_error");
  const ApiError busy(503, "unavailable_error", "later");
  EXPECT_EQ(Json::parse(busy.body(ErrorForm::kAnthropic))["error"]["type"], "overloaded_error");
  EXPECT_EQ(busy.reply(ErrorForm::kAnthropic).headers[0].first, "Retry-After");
}

}  // namespace
}  // namespace octet::serve
