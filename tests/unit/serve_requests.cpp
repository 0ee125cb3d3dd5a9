// Bodies to engine requests: every field honoured or refused by name, whatever is thrown at it.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "octet/serve/api_error.h"
#include "octet/serve/generation_request.h"
#include "octet/serve/text_routes.h"
#include "support/served_model.h"

namespace octet::serve {
namespace {

const ServedModel& model() {
  return test::served_model();
}

Json chat_body(const Json& more) {
  Json body;
  body["messages"] = Json::array();
  body["messages"].push_back({{"role", "user"}, {"content", "Hello."}});
  body.update(more);
  return body;
}

std::string refusal(const Json& body) {
  try {
    read_chat_request(body, model());
  } catch (const ApiError& error) {
    EXPECT_FALSE(std::string(error.what()).empty());
    return error.param();
  }
  return "accepted";
}

TEST(ServeRequests, SayWhatTheClientSaid) {
  const GenerationRequest request = read_chat_request(
      chat_body(
          {{"temperature", 0.5},
           {"top_k", 40},
           {"seed", 7},
           {"stop", "END"},
           {"max_tokens", 9},
           {"max_completion_tokens", 5},
           {"n", 2},
           {"priority", -3},
           {"deadline_ms", 250},
           {"speculative", {{"enabled", true}, {"max_length", 3}}}}
      ),
      model()
  );
  EXPECT_EQ(request.generate.sampling.temperature, 0.5F);
  EXPECT_EQ(request.generate.sampling.top_k, 40);
  EXPECT_EQ(request.generate.sampling.seed, 7U);
  EXPECT_EQ(request.generate.stop_strings, std::vector<std::string>{"END"});
  EXPECT_EQ(request.generate.max_tokens, 5);
  EXPECT_EQ(request.generate.draft_max, 3);
  EXPECT_EQ(request.choices, 2);
  EXPECT_EQ(request.priority, -3);
  EXPECT_EQ(request.deadline_ms, 250.0);
  EXPECT_EQ(request.engine_request(0, 1).generate.sampling.seed, 8U);
}

TEST(ServeRequests, WhatIsNotSaidIsAsTheServerWasStarted) {
  ServedModel started = model();
  started.sampling.temperature = 0.75F;
  started.sampling.logit_bias = {{42, -3.0F}};
  started.sampling.penalty_scope = PenaltyScope::kPromptAndReply;
  started.seed = 11;
  const auto sampling = [&](const Json& more) {
    return read_chat_request(chat_body(more), started).generate.sampling;
  };
  const SamplingParams said_nothing = sampling(Json::object());
  EXPECT_EQ(said_nothing.temperature, 0.75F);
  ASSERT_EQ(said_nothing.logit_bias.size(), 1U);
  EXPECT_EQ(said_nothing.logit_bias[0].token, 42);
  EXPECT_EQ(said_nothing.penalty_scope, PenaltyScope::kPromptAndReply);
  EXPECT_EQ(said_nothing.seed, 11U);
  const SamplingParams said_all = sampling(
      {{"temperature", 0}, {"logit_bias", {{"7", 1}}}, {"penalise_prompt", false}, {"seed", 5}}
  );
  EXPECT_EQ(said_all.temperature, 0.0F);
  ASSERT_EQ(said_all.logit_bias.size(), 1U);
  EXPECT_EQ(said_all.logit_bias[0].token, 7);
  EXPECT_EQ(said_all.penalty_scope, PenaltyScope::kReply);
  EXPECT_EQ(said_all.seed, 5U);
  EXPECT_TRUE(sampling({{"logit_bias", Json::object()}}).logit_bias.empty());
  EXPECT_NE(sampling({{"seed", -1}}).seed, sampling({{"seed", -1}}).seed);  // fresh ones
}

TEST(ServeRequests, BudgetsOfThoughtInEverySpelling) {
  for (const char* name :
       {"thinking_token_budget", "thinking_budget_tokens", "reasoning_budget_tokens"}) {
    EXPECT_EQ(read_chat_request(chat_body({{name, 12}}), model()).thinking_budget, 12) << name;
  }
  const Json inside = {{"chat_template_kwargs", {{"thinking_token_budget", 12}}}};
  EXPECT_EQ(read_chat_request(chat_body(inside), model()).thinking_budget, 12);
  const Json anthropic = {{"thinking", {{"type", "enabled"}, {"budget_tokens", 12}}}};
  EXPECT_EQ(read_chat_request(chat_body(anthropic), model()).thinking_budget, 12);
  EXPECT_EQ(
      read_chat_request(chat_body({{"reasoning_effort", "low"}}), model()).thinking_budget, 128
  );
  EXPECT_EQ(read_chat_request(chat_body(Json::object()), model()).thinking_budget, std::nullopt);
  const Json off = {{"chat_template_kwargs", {{"enable_thinking", false}}}};
  EXPECT_EQ(read_chat_request(chat_body(off), model()).thinking_budget, 0);
  EXPECT_EQ(
      refusal(chat_body({{"thinking_token_budget", 2}, {"thinking_budget_tokens", 3}})),
      "thinking_budget_tokens"
  );
}

TEST(ServeRequests, RefuseByName) {
  const std::vector<std::pair<const char*, Json>> bad = {
      {"temperature", {{"temperature", 101}}},
      {"temperature", {{"temperature", "1"}}},
      {"top_p", {{"top_p", 0}}},
      {"min_p", {{"min_p", 1}}},
      {"repetition_penalty", {{"repetition_penalty", 0}}},
      {"n", {{"n", 0}}},
      {"n", {{"n", 1e12}}},
      {"max_tokens", {{"max_tokens", 1.5}}},
      {"seed", {{"seed", 1e30}}},
      {"stop", {{"stop", Json::array({""})}}},
      {"stop", {{"stop", 1}}},
      {"logit_bias", {{"logit_bias", {{"x", 1}}}}},
      {"logit_bias", {{"logit_bias", Json::array({1})}}},
      {"logit_bias", {{"logit_bias", {{"1", 101}}}}},
      {"stream_options", {{"stream_options", {{"include_usage", true}}}}},
      {"top_logprobs", {{"top_logprobs", 2}}},
      {"tools[0]", {{"tools", Json::array({Json::object()})}}},
      {"tool_choice", {{"tool_choice", "auto"}}},
      {"messages", {{"messages", Json::array()}}},
      {"messages", {{"messages", "hello"}}},
      {"messages", {{"messages", Json::array({Json{{"role", "wizard"}, {"content", "x"}}})}}},
      {"speculative", {{"speculative", true}}},
      {"speculative.max_length", {{"speculative", {{"max_length", 99}}}}},
      {"request_id", {{"request_id", "../x"}}},
      {"deadline_ms", {{"deadline_ms", -1}}},
      {"priority", {{"priority", 101}}},
      {"modalities", {{"modalities", Json::array({"audio"})}}},
      {"audio", {{"audio", Json::object()}}},
      {"xtc_probability", {{"xtc_probability", 0.1}}},
      {"cache_prompt", {{"cache_prompt", false}}},
  };
  for (const auto& [param, more] : bad) {
    EXPECT_EQ(refusal(chat_body(more)), param) << more.dump();
  }
}

TEST(ServeRequests, StrictnessIsEachToolsOwn) {
  const Json odd = {// "not" is not supported
                    {"type", "object"},
                    {"properties", Json::object()},
                    {"not", {{"type", "null"}}}};
  const auto tool = [](const char* name, const Json& parameters, bool strict) {
    return Json{
        {"type", "function"},
        {"function", {{"name", name}, {"parameters", parameters}, {"strict", strict}}}};
  };
  const Json plain = {{"type", "object"}, {"properties", {{"a", {{"type", "integer"}}}}}};
  const auto body = [&](bool first, bool second) {
    return chat_body({{"tools", Json::array({tool("f", plain, first), tool("g", odd, second)})}});
  };
  EXPECT_EQ(refusal(body(true, false)), "accepted");
  EXPECT_EQ(refusal(body(false, true)), "tools");
  EXPECT_EQ(read_chat_request(body(false, false), model()).grammar, nullptr);
  EXPECT_NE(read_chat_request(body(true, false), model()).grammar, nullptr);
}

TEST(ServeRequests, StrictRefusesWhatItDoesNotKnow) {
  EXPECT_EQ(refusal(chat_body({{"user", "me"}})), "accepted");
  EXPECT_EQ(refusal(chat_body({{"user", "me"}, {"strict", true}})), "user");
  EXPECT_EQ(refusal(chat_body({{"temperature", nullptr}, {"strict", true}})), "accepted");
}

TEST(ServeRequests, TooLongAPromptIsToldWithBothNumbers) {
  Json body = chat_body(Json::object());
  std::string text;
  for (int i = 0; i < 600; ++i) {
    text += "word ";
  }
  body["messages"][0]["content"] = text;
  try {
    read_chat_request(body, model());
    FAIL();
  } catch (const ApiError& error) {
    EXPECT_EQ(error.code(), "context_length_exceeded");
    EXPECT_NE(std::string(error.what()).find("512"), std::string::npos);
  }
}

TEST(ServeRequests, BodiesThatAreNone) {
  for (const std::string body :
       {"", "{", "[]", "null", "1", "{\"a\":}", "\xFF", "{\"a\":1}x", "{\"a\":1e999}"}) {
    EXPECT_THROW(parse_body(body), ApiError) << body;
  }
  std::string deep = "{\"a\":";
  for (int i = 0; i < 100; ++i) {
    deep += "[";
  }
  EXPECT_THROW(parse_body(deep), ApiError);
  EXPECT_THROW(parse_body("{\"a\":[1,2,3,4]}", {.max_depth = 8, .max_values = 3}), ApiError);
}

TEST(ServeRequests, MarksTheEndOfTheSystemTurn) {
  Json body;
  body["messages"] = Json::array();
  body["messages"].push_back({{"role", "system"}, {"content", "You are a robot on a table."}});
  body["messages"].push_back({{"role", "user"}, {"content", "Hello."}});
  const GenerationRequest one = read_chat_request(body, model());
  body["messages"][1]["content"] = "Something else.";
  const GenerationRequest two = read_chat_request(body, model());
  ASSERT_EQ(one.generate.marks.size(), 1U);
  EXPECT_EQ(one.generate.marks, two.generate.marks);
  const auto mark = static_cast<size_t>(one.generate.marks.front());
  EXPECT_TRUE(std::equal(
      one.prompts[0].begin(),
      one.prompts[0].begin() + static_cast<ptrdiff_t>(mark),
      two.prompts[0].begin()
  ));
}

TEST(ServeRequests, TextRoutesGoThereAndBack) {
  const Json tokens = tokenize_text({{"content", "Hi \xF0\x9F\xA6\x8E"}}, model());
  EXPECT_EQ(
      detokenize_text({{"tokens", tokens["tokens"]}}, model())["content"], "Hi \xF0\x9F\xA6\x8E"
  );
  EXPECT_THROW(detokenize_text({{"tokens", Json::array({-1})}}, model()), ApiError);
  EXPECT_THROW(tokenize_text(Json::object(), model()), ApiError);
}

}  // namespace
}  // namespace octet::serve
