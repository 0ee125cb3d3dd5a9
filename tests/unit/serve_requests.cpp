// Bodies to engine requests: every field honoured or refused by name, whatever is thrown at it.

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "octet/grammar/matcher.h"
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

TEST(ServeRequests, TheServersPolicyHoldsForRequestsThatDoNotSay) {
  for (const bool adapt : {false, true}) {
    ServedModel served = model();
    served.adapt_drafts = adapt;
    const auto read = [&](const Json& more) {
      return read_chat_request(chat_body(more), served).generate.adapt_drafts;
    };
    EXPECT_EQ(read(Json::object()), adapt);
    EXPECT_EQ(read({{"speculative", {{"max_length", 3}}}}), adapt);
    EXPECT_EQ(read({{"speculative.n_max", 3}}), adapt);
    EXPECT_TRUE(read({{"speculative", {{"policy", "adaptive"}}}}));
    EXPECT_FALSE(read({{"speculative", {{"policy", "fixed"}}}}));
  }
}

struct SamplingRow {
  Json field;
  std::function<void(const GenerateRequest&)> check;
};

// Every field that says how tokens are chosen, each to its own member, under all its names.
TEST(ServeRequests, EverySamplingFieldReachesItsMember) {
  const auto number = [](const char* name, double value, auto member) {
    return SamplingRow{{{name, value}}, [=](const GenerateRequest& request) {
                         EXPECT_EQ(
                             static_cast<double>(std::invoke(member, request.sampling)),
                             static_cast<double>(static_cast<float>(value))
                         ) << name;
                       }};
  };
  const std::vector<SamplingRow> rows = {
      number("temperature", 0.25, &SamplingParams::temperature),
      number("top_p", 0.625, &SamplingParams::top_p),
      number("min_p", 0.125, &SamplingParams::min_p),
      number("presence_penalty", 0.375, &SamplingParams::presence_penalty),
      number("frequency_penalty", -0.75, &SamplingParams::frequency_penalty),
      number("repetition_penalty", 1.25, &SamplingParams::repetition_penalty),
      number("repeat_penalty", 1.5, &SamplingParams::repetition_penalty),
      number("top_k", 17, &SamplingParams::top_k),
      number("repeat_last_n", 23, &SamplingParams::penalty_last_n),
      number("seed", 29, &SamplingParams::seed),
      {{{"penalise_prompt", true}},
       [](const GenerateRequest& request) {
         EXPECT_EQ(request.sampling.penalty_scope, PenaltyScope::kPromptAndReply);
       }},
      {{{"logit_bias", {{"31", -2.5}}}},
       [](const GenerateRequest& request) {
         ASSERT_EQ(request.sampling.logit_bias.size(), 1U);
         EXPECT_EQ(request.sampling.logit_bias[0].token, 31);
         EXPECT_EQ(request.sampling.logit_bias[0].bias, -2.5F);
       }},
      {{{"logit_bias", Json::array({Json::array({37, false})})}},
       [](const GenerateRequest& request) {
         ASSERT_EQ(request.sampling.logit_bias.size(), 1U);
         EXPECT_EQ(request.sampling.logit_bias[0].token, 37);
         EXPECT_EQ(request.sampling.logit_bias[0].bias, kBanBias);
       }},
      {{{"stop_token_ids", Json::array({41})}},
       [](const GenerateRequest& request) {
         ASSERT_TRUE(request.stop_tokens.has_value());
         EXPECT_EQ(request.stop_tokens->back(), 41);
         EXPECT_EQ(request.stop_tokens->size(), model().tokenizer->stop_ids().size() + 1);
       }},
      {{{"ignore_eos", true}},
       [](const GenerateRequest& request) {
         ASSERT_TRUE(request.stop_tokens.has_value());
         EXPECT_TRUE(request.stop_tokens->empty());
       }},
      {{{"min_tokens", 3}},
       [](const GenerateRequest& request) { EXPECT_EQ(request.min_tokens, 3); }},
      {{{"n_predict", 43}},
       [](const GenerateRequest& request) { EXPECT_EQ(request.max_tokens, 43); }},
      {{{"n_predict", 43}, {"max_tokens", 47}},
       [](const GenerateRequest& request) { EXPECT_EQ(request.max_tokens, 47); }},
      {{{"speculative.n_max", 3}},
       [](const GenerateRequest& request) { EXPECT_EQ(request.draft_max, 3); }},
      {{{"speculative.n_max", 0}},
       [](const GenerateRequest& request) { EXPECT_EQ(request.draft_max, 0); }},
      {{{"stop", Json::array({"x", "yz"})}},
       [](const GenerateRequest& request) {
         EXPECT_EQ(request.stop_strings, (std::vector<std::string>{"x", "yz"}));
         EXPECT_TRUE(request.stop_in_speech);
       }},
  };
  const GenerateRequest usual = read_chat_request(chat_body({{"seed", 1}}), model()).generate;
  for (const SamplingRow& row : rows) {
    SCOPED_TRACE(row.field.dump());
    Json body = chat_body(row.field);
    const bool seeded = body.contains("seed");
    body["seed"] = seeded ? body["seed"] : Json(1);
    const GenerateRequest request = read_chat_request(body, model()).generate;
    row.check(request);
    // And no other: with its own member put back, nothing is left of it.
    SamplingParams rest = request.sampling;
    const auto same = [](const SamplingParams& a, const SamplingParams& b) {
      return (a.temperature == b.temperature) + (a.top_k == b.top_k) + (a.top_p == b.top_p) +
             (a.min_p == b.min_p) + (a.repetition_penalty == b.repetition_penalty) +
             (a.presence_penalty == b.presence_penalty) +
             (a.frequency_penalty == b.frequency_penalty) + (a.penalty_scope == b.penalty_scope) +
             (a.penalty_last_n == b.penalty_last_n) + (a.logit_bias.size() == b.logit_bias.size()) +
             (a.seed == b.seed);
    };
    EXPECT_GE(same(rest, usual.sampling), 10) << "more than one member changed";
  }
}

TEST(ServeRequests, ThinkingIsToldUnderEveryNameInUse) {
  const auto read = [](const Json& more) { return read_chat_request(chat_body(more), model()); };
  EXPECT_EQ(read({{"enable_thinking", false}}).thinking_budget, 0);
  EXPECT_EQ(
      read({{"enable_thinking", false}}).prompts,
      read({{"chat_template_kwargs", {{"enable_thinking", false}}}}).prompts
  );
  EXPECT_EQ(read({{"reasoning", {{"max_tokens", 21}}}}).thinking_budget, 21);
  EXPECT_EQ(read({{"reasoning", {{"effort", "low"}}}}).thinking_budget, 128);
  EXPECT_EQ(read({{"reasoning", {{"enabled", false}}}}).thinking_budget, 0);
  EXPECT_EQ(
      read({{"chat_template_kwargs", {{"reasoning_effort", "minimal"}}}}).thinking_budget, 32
  );
  EXPECT_EQ(
      read({{"conversational_mode", true}}).prompts,
      read({{"chat_template_kwargs", {{"conversational_mode", true}}}}).prompts
  );
  EXPECT_EQ(
      refusal(chat_body(
          {{"enable_thinking", true}, {"chat_template_kwargs", {{"enable_thinking", false}}}}
      )),
      "chat_template_kwargs.enable_thinking"
  );
  EXPECT_EQ(
      refusal(chat_body({{"reasoning_effort", "low"}, {"reasoning", {{"effort", "high"}}}})),
      "reasoning.effort"
  );
  EXPECT_EQ(refusal(chat_body({{"reasoning", {{"exclude", true}}}})), "reasoning.exclude");
}

TEST(ServeRequests, FieldsOfAnotherFormAreRefusedWhereTheySaySomething) {
  const auto completion_refusal = [](const Json& more) -> std::string {
    Json body = {{"prompt", "Hello."}};
    body.update(more);
    try {
      read_completion_request(body, model());
    } catch (const ApiError& error) {
      return error.param();
    }
    return "accepted";
  };
  for (const auto& [name, value] : std::vector<std::pair<const char*, Json>>{
           {"prompt", "none"}, {"suffix", "x"}, {"echo", true}, {"best_of", 2}}) {
    EXPECT_EQ(refusal(chat_body({{name, value}})), name);
  }
  EXPECT_EQ(
      refusal(chat_body({{"prompt", nullptr}, {"suffix", ""}, {"echo", false}, {"best_of", 1}})),
      "accepted"
  );
  const Json message = {{"role", "user"}, {"content", "x"}};
  for (const auto& [name, value] : std::vector<std::pair<const char*, Json>>{
           {"messages", Json::array({message})},
           {"tools", Json::array({Json::object()})},
           {"tool_choice", "required"},
           {"reasoning_effort", "low"},
           {"reasoning", {{"effort", "low"}}},
           {"enable_thinking", true},
           {"chat_template_kwargs", {{"enable_thinking", true}}},
           {"suffix", "x"},
           {"echo", true},
           {"best_of", 2}}) {
    EXPECT_EQ(completion_refusal({{name, value}}), name);
  }
  EXPECT_EQ(
      completion_refusal(
          {{"messages", Json::array()},
           {"tools", Json::array()},
           {"tool_choice", "none"},
           {"echo", false},
           {"chat_template_kwargs", Json::object()}}
      ),
      "accepted"
  );
}

TEST(ServeRequests, WhatTheTemplateWouldNotSeeIsRefused) {
  const auto with_message = [](const Json& more, bool strict) {
    Json body = chat_body({{"strict", strict}});
    body["messages"][0].update(more);
    return refusal(body);
  };
  const Json call = {{"name", "f"}, {"arguments", "{}"}};
  EXPECT_EQ(with_message({{"function_call", call}}, false), "messages[0].function_call");
  EXPECT_EQ(with_message({{"audio", {{"id", "x"}}}}, false), "messages[0].audio");
  EXPECT_EQ(with_message({{"function_call", nullptr}, {"refusal", nullptr}}, true), "accepted");
  EXPECT_EQ(with_message({{"mood", "good"}}, false), "accepted");
  EXPECT_EQ(with_message({{"mood", "good"}}, true), "messages[0].mood");
  const Json part = {{"type", "text"}, {"text", "Hello."}, {"lang", "en"}};
  EXPECT_EQ(with_message({{"content", Json::array({part})}}, false), "accepted");
  EXPECT_EQ(with_message({{"content", Json::array({part})}}, true), "messages[0].content[0].lang");
  const auto with_call = [&](const char* where, bool strict) {
    Json called = {{"id", "c"}, {"type", "function"}, {"function", call}, {"index", 0}};
    called[Json::json_pointer(where)] = "x";
    Json body = chat_body({{"strict", strict}});
    body["messages"].push_back({{"role", "assistant"}, {"content", ""}});
    body["messages"].back()["tool_calls"] = Json::array({called});
    body["messages"].push_back({{"role", "tool"}, {"tool_call_id", "c"}, {"content", "x"}});
    return refusal(body);
  };
  EXPECT_EQ(with_call("/id", true), "accepted");
  EXPECT_EQ(with_call("/when", false), "accepted");
  EXPECT_EQ(with_call("/when", true), "messages[1].tool_calls[0].when");
  EXPECT_EQ(with_call("/function/when", true), "messages[1].tool_calls[0].function.when");
  const auto with_tool = [](const char* where, bool strict) {
    Json tool = {{"type", "function"}, {"function", {{"name", "f"}, {"description", "d"}}}};
    tool["function"]["parameters"] = {{"type", "object"}, {"properties", Json::object()}};
    tool[Json::json_pointer(where)] = "x";
    return refusal(chat_body({{"tools", Json::array({tool})}, {"strict", strict}}));
  };
  EXPECT_EQ(with_tool("/function/description", true), "accepted");
  EXPECT_EQ(with_tool("/when", false), "accepted");
  EXPECT_EQ(with_tool("/when", true), "tools[0].when");
  EXPECT_EQ(with_tool("/function/when", true), "tools[0].function.when");
  const auto arguments = [](const Json& given, bool strict) {
    return refusal(chat_body({{"chat_template_kwargs", given}, {"strict", strict}}));
  };
  EXPECT_EQ(arguments({{"enable_thinkin", true}}, false), "accepted");
  EXPECT_EQ(arguments({{"enable_thinkin", true}}, true), "chat_template_kwargs.enable_thinkin");
  EXPECT_EQ(arguments({{"enable_thinking", true}, {"thinking_token_budget", 4}}, true), "accepted");
}

TEST(ServeRequests, ToolsGoWithAFormatOfWhatIsSaidAlone) {
  const Json tool = {
      {"type", "function"},
      {"function",
       {{"name", "f"},
        {"parameters", {{"type", "object"}, {"properties", {{"a", {{"type", "string"}}}}}}}}}};
  const auto both = [&](const Json& choice, const Json& format) {
    Json body = chat_body({{"tools", Json::array({tool})}, {"tool_choice", choice}});
    body.update(format);
    return body;
  };
  const Json json = {{"response_format", {{"type", "json_object"}}}};
  EXPECT_EQ(refusal(both("required", json)), "tool_choice");
  EXPECT_EQ(refusal(both("auto", {{"choice", Json::array({"a", "b"})}})), "tool_choice");
  EXPECT_EQ(refusal(both("auto", {{"regex", "a+"}})), "tool_choice");
  EXPECT_EQ(refusal(both("none", json)), "accepted");
  EXPECT_EQ(refusal(both("auto", {{"response_format", {{"type", "text"}}}})), "accepted");
  Json body = both("auto", json);
  const auto matches = [&](const std::string& text) {
    const GenerationRequest request = read_chat_request(body, model());
    Matcher matcher(request.grammar);
    for (const TokenId token : model().tokenizer->encode(text, SpecialTokens::kParse)) {
      if (!matcher.accept(token)) {
        return false;
      }
    }
    return matcher.can_end();
  };
  const std::string call = "<|tool_call>call:f{a:1}<tool_call|>";
  body["reasoning_effort"] = "none";
  EXPECT_TRUE(matches(R"({"a": 1})"));
  EXPECT_TRUE(matches(call));
  EXPECT_TRUE(matches(call + call));
  EXPECT_FALSE(matches("Well, " + call));
  EXPECT_TRUE(matches(R"({"a": 1})" + call)) << "speech, then calls";
  EXPECT_FALSE(matches(call + R"({"a": 1})"));
  EXPECT_FALSE(matches("yes"));
  body["parallel_tool_calls"] = false;
  EXPECT_FALSE(matches(call + call));
  body["response_format"] = {
      {"type", "json_schema"},
      {"json_schema",
       {{"name", "n"},
        {"schema",
         {{"type", "object"},
          {"properties", {{"b", {{"type", "boolean"}}}}},
          {"required", Json::array({"b"})},
          {"additionalProperties", false}}}}}};
  EXPECT_TRUE(matches(R"({"b": true})"));
  EXPECT_FALSE(matches(R"({"a": 1})"));
  EXPECT_TRUE(matches(call));
}

TEST(ServeRequests, AGrammarGoesByBothItsNames) {
  for (const char* name : {"grammar", "ebnf"}) {
    EXPECT_NE(read_chat_request(chat_body({{name, "root ::= \"a\""}}), model()).grammar, nullptr);
    EXPECT_EQ(refusal(chat_body({{name, "rout ::="}})), name);
  }
}

// The documentation's list of refused fields, and the code's. A name with a * stands for all that
// begin so.
TEST(ServeRequests, TheDocumentationListsWhatIsRefused) {
  std::ifstream file(OCTET_SOURCE_DIR "/docs/http_api.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t begin = text.find("## What is refused");
  ASSERT_NE(begin, std::string::npos);
  const std::string section = text.substr(begin, text.find("\n\n", begin + 20) - begin);
  std::vector<std::string> listed;
  const std::regex name("`([a-z_]+\\*?)`");
  for (std::sregex_iterator match(section.begin(), section.end(), name), end; match != end;
       ++match) {
    listed.push_back((*match)[1]);
  }
  const auto stands_for = [](const std::string& pattern, std::string_view field) {
    return pattern.back() == '*' ? field.starts_with(pattern.substr(0, pattern.size() - 1))
                                 : field == pattern;
  };
  EXPECT_GT(listed.size(), 20U);
  for (const std::string_view field : refused_fields()) {
    EXPECT_TRUE(std::ranges::any_of(
        listed, [&](const std::string& pattern) { return stands_for(pattern, field); }
    )) << field
       << " is refused and not listed";
    EXPECT_EQ(refusal(chat_body({{std::string(field), 1}})), field);
  }
  for (const std::string& pattern : listed) {
    EXPECT_TRUE(std::ranges::any_of(
        refused_fields(), [&](std::string_view field) { return stands_for(pattern, field); }
    )) << pattern
       << " is listed and not refused";
  }
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

ServedModel gemma_model() {
  ServedModel gemma = model();
  gemma.chat_template = std::make_shared<const ChatTemplate>(BuiltinTemplate::kGemma4);
  return gemma;
}

// Whatever asks for thoughts asks the template for them, where that has to be asked.
TEST(ServeRequests, ThoughtsCanBeAskedForWhereTheTemplateHasNoneByItself) {
  const ServedModel gemma = gemma_model();
  const auto rendered = [&](const Json& more) { return render_prompt(chat_body(more), gemma); };
  const std::string silent = rendered(Json::object())["prompt"];
  const std::string thinking = rendered({{"enable_thinking", true}})["prompt"];
  ASSERT_NE(silent, thinking);
  for (const Json& more : {
           Json{{"thinking", {{"type", "enabled"}}}},
           Json{{"thinking", {{"type", "adaptive"}}}},
           Json{{"thinking", {{"type", "enabled"}, {"budget_tokens", 20}}}},
           Json{{"thinking_token_budget", 20}},
           Json{{"thinking_budget", -1}},
           Json{{"reasoning_effort", "low"}},
           Json{{"reasoning_effort", "high"}},
           Json{{"reasoning", {{"enabled", true}}}},
           Json{{"chat_template_kwargs", {{"reasoning_budget", 20}}}},
           Json{{"reasoning_effort", "none"}, {"thinking_budget", 20}},
       }) {
    EXPECT_EQ(rendered(more)["prompt"], thinking) << more;
    EXPECT_EQ(rendered(more)["thinking"], true) << more;
  }
  for (const Json& more : {
           Json::object(),
           Json{{"thinking", {{"type", "disabled"}}}},
           Json{{"thinking_token_budget", 0}},
           Json{{"reasoning_effort", "none"}},
           Json{{"enable_thinking", false}, {"reasoning_effort", "high"}},
           Json{{"enable_thinking", true}, {"thinking_budget", 0}},
           Json{
               {"enable_thinking", nullptr},
               {"chat_template_kwargs", {{"enable_thinking", nullptr}}}},
       }) {
    EXPECT_EQ(rendered(more)["thinking"], false) << more;
    EXPECT_EQ(rendered(more)["prompt"], rendered({{"enable_thinking", false}})["prompt"]) << more;
  }
  // Nothing was forbidden where nothing was said.
  EXPECT_EQ(rendered(Json::object())["thinking_token_budget"], nullptr);
  EXPECT_EQ(render_prompt(chat_body(Json::object()), model())["thinking"], true);
  EXPECT_EQ(render_prompt(chat_body({{"enable_thinking", false}}), model())["thinking"], false);
}

// What was agreed on reaches the template, in one spelling.
TEST(ServeRequests, TemplatesSeeTheBudgetThatHolds) {
  const auto prompt = [](const Json& more) -> std::string {
    return render_prompt(chat_body(more), model())["prompt"];
  };
  const auto inside = [](const Json& more) { return Json{{"chat_template_kwargs", more}}; };
  const std::string limited = prompt({{"thinking_token_budget", 128}});
  ASSERT_NE(limited.find("does not exceed 128 tokens."), std::string::npos) << limited;
  EXPECT_EQ(prompt(inside({{"thinking_token_budget", 128.0}})), limited);
  EXPECT_EQ(prompt(inside({{"thinking_budget", 128}})), limited);
  Json both = inside({{"thinking_token_budget", nullptr}});
  both["thinking_token_budget"] = 128;
  EXPECT_EQ(prompt(both), limited);
  const std::string free = prompt(Json::object());
  EXPECT_EQ(prompt(inside({{"thinking_token_budget", -1}})), free);
  EXPECT_EQ(prompt(inside({{"enable_thinking", nullptr}})), free);
  EXPECT_EQ(
      prompt(inside({{"enable_thinking", nullptr}, {"thinking_token_budget", 128}})), limited
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
  const std::string two = R"({"a":{"b":1,"c":2},"d":[{"e":1,"f":2},{"g":3}]})";
  EXPECT_EQ(parse_body(two, {.max_members = 2})["a"]["c"], 2);
  EXPECT_THROW(parse_body(two, {.max_members = 1}), ApiError);
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
