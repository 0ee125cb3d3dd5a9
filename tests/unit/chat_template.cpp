// Messages to prompts: the forms of a request, what may not become control tokens, continued
// messages, and templates in files.
#include "octet/chat/chat_template.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "octet/formats/open_checkpoint.h"
#include "support/error_message.h"
#include "support/golden_text.h"
#include "support/temporary_directory.h"
#include "support/tokenizer_fixtures.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

struct Request {
  Json messages = Json::array();
  Json tools = nullptr;
  Json arguments = nullptr;
  bool open_reply = true;
  bool continue_last_message = false;

  ChatInput input() const {
    return {
        .messages = &messages,
        .tools = &tools,
        .arguments = &arguments,
        .open_reply = open_reply,
        .continue_last_message = continue_last_message};
  }
};

std::string rendered(const ChatTemplate& chat, const Request& request) {
  std::string text;
  for (const TextSpan& span : chat.render(*test::tiny_tokenizer(), request.input())) {
    text.append(span.text);
  }
  return text;
}

std::string refused(const ChatTemplate& chat, const Request& request) {
  return test::error_message([&] { rendered(chat, request); });
}

const ChatTemplate& bolt() {
  static const ChatTemplate chat(BuiltinTemplate::kBolt);
  return chat;
}
const ChatTemplate& gemma() {
  static const ChatTemplate chat(BuiltinTemplate::kGemma4);
  return chat;
}

Json user(const std::string& text) {
  return {{"role", "user"}, {"content", text}};
}

const Json kClock =
    Json::parse(R"([{"type":"function","function":{"name":"get_time","description":"Clock",
  "parameters":{"type":"object","properties":{"city":{"type":"string","description":"City"}},"required":["city"]}}}])"
    );

TEST(ChatTemplate, PublishedExampleOfAToolCycle) {
  Request request;
  request.messages = {{{"role", "system"}, {"content", "Be short."}}, user("Time in Oslo?")};
  request.tools = kClock;
  request.arguments = {{"enable_thinking", true}};
  const std::string start =
      "<bos><|turn>system\n<|think|>\nBe "
      "short.<|tool>declaration:get_time{description:<|\"|>Clock<|\"|>,"
      "parameters:{properties:{city:{description:<|\"|>City<|\"|>,type:<|\"|>STRING<|\"|>}},"
      "required:[<|\"|>city<|\"|>],type:<|\"|>OBJECT<|\"|>}}<tool|><turn|>\n<|turn>user\nTime in "
      "Oslo?<turn|>\n<|turn>model\n";
  EXPECT_EQ(rendered(gemma(), request), start);
  EXPECT_EQ(rendered(bolt(), request), start);

  request.messages.push_back(Json::parse(
      R"({"role":"assistant","content":"One moment.","reasoning_content":"Need the clock.",
    "tool_calls":[{"id":"c1","type":"function","function":{"name":"get_time","arguments":"{\"city\": \"Oslo\"}"}}]})"
  ));
  request.messages.push_back({{"role", "tool"}, {"tool_call_id", "c1"}, {"content", "14:05"}});
  const std::string thought = "<|channel>thought\nNeed the clock.\n<channel|>";
  const std::string cycle =
      "<|tool_call>call:get_time{city:<|\"|>Oslo<|\"|>}<tool_call|><|tool_response>response:get_"
      "time{"
      "value:<|\"|>14:05<|\"|>}<tool_response|>";
  EXPECT_EQ(rendered(bolt(), request), start + thought + "One moment." + cycle);
  EXPECT_EQ(
      rendered(gemma(), request), start + thought + cycle + "One moment.<turn|>\n<|turn>model\n"
  );
  request.messages.push_back({{"role", "assistant"}, {"content", "It is 14:05."}});
  request.messages.push_back(user("Thanks"));
  EXPECT_EQ(
      rendered(bolt(), request),
      start + "One moment." + cycle +
          "It is 14:05.<turn|>\n<|turn>user\nThanks<turn|>\n<|turn>model\n"
  );
}

TEST(ChatTemplate, SentencesAndDefaultsOfBolt) {
  Request request;
  request.messages = {user("Hi")};
  EXPECT_EQ(
      rendered(bolt(), request),
      "<bos><|turn>system\n<|think|>\n<turn|>\n<|turn>user\nHi<turn|>\n<|turn>model\n"
  );
  EXPECT_EQ(rendered(gemma(), request), "<bos><|turn>user\nHi<turn|>\n<|turn>model\n");
  request.arguments = {{"enable_thinking", false}, {"thinking_token_budget", 64}};
  EXPECT_EQ(
      rendered(bolt(), request),
      "<bos><|turn>system\n<turn|>\n<|turn>user\nHi<turn|>\n<|turn>model\n"
  );
  request.arguments = {{"thinking_token_budget", 64}, {"conversational_mode", true}};
  EXPECT_EQ(
      rendered(bolt(), request),
      "<bos><|turn>system\n<|think|>\nEnsure that your thinking process is concise and does not "
      "exceed "
      "64 tokens. Keep responses brief, natural, and easy to understand in conversation.<turn|>\n"
      "<|turn>user\nHi<turn|>\n<|turn>model\n"
  );
}

TEST(ChatTemplate, FormsOfMessages) {
  Request request;
  request.arguments = {{"enable_thinking", false}};
  request.messages = Json::parse(
      R"([{"role":"developer","content":[{"type":"text","text":" Be "},{"type":"text","text":"brief. "}]},
    {"role":"user","content":[{"type":"text","text":"Hi"}]},{"role":"assistant","content":null},{"role":"user","content":"x"}])"
  );
  EXPECT_EQ(
      rendered(bolt(), request),
      "<bos><|turn>system\nBe "
      "brief.<turn|>\n<|turn>user\nHi<turn|>\n<|turn>model\n<turn|>\n<|turn>user\nx<"
      "turn|>\n<|turn>model\n"
  );
  request.messages = {{{"role", "user"}, {"content", {{{"type", "image_url"}}}}}};
  EXPECT_EQ(
      refused(bolt(), request),
      "messages[0].content[0] has the type 'image_url', and this model reads text only"
  );
  request.messages = {{{"role", "robot"}, {"content", "x"}}};
  EXPECT_EQ(
      refused(bolt(), request),
      "messages[0].role is 'robot'; expected system, developer, user, assistant or tool"
  );
  request.messages = {user("a"), {{"role", "system"}, {"content", "b"}}};
  EXPECT_NE(refused(bolt(), request).find("message 1 is a system message"), std::string::npos);
  request.messages = {{{"role", "user"}}};
  EXPECT_EQ(refused(bolt(), request), "messages[0] has no content");
  request.messages = Json::object();
  EXPECT_EQ(refused(bolt(), request), "messages must be an array");
  request.messages = {user("a")};
  request.arguments = {{"bos_token", "x"}};
  EXPECT_EQ(refused(bolt(), request), "chat_template_kwargs may not set 'bos_token'");
  request.arguments = nullptr;
  request.tools = {{{"type", "function"}}};
  EXPECT_EQ(refused(bolt(), request), "tools[0].function must have a name");
  request.tools = nullptr;
  request.messages = Json::parse(
      R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"[1"}}]}])"
  );
  EXPECT_EQ(
      refused(bolt(), request),
      "messages[0].tool_calls[0].function.arguments must be the text of a JSON object"
  );
}

/// Calls are the assistant's: what another message holds under that name is not read.
TEST(ChatTemplate, AnswersFindTheirCallWithTheAssistantAlone) {
  Request request;
  request.messages = Json::parse(
      R"([{"role":"user","content":"a","tool_calls":[{"id":"x"}]},
          {"role":"tool","tool_call_id":"x","content":"b"}])"
  );
  EXPECT_NE(refused(bolt(), request), "");
}

TEST(ChatTemplate, ContinuesTheLastMessage) {
  Request request;
  request.arguments = {{"enable_thinking", false}};
  request.messages = {user("Hi"), {{"role", "assistant"}, {"content", "Once upon a "}}};
  request.continue_last_message = true;
  for (const ChatTemplate* chat : {&bolt(), &gemma()}) {
    EXPECT_EQ(rendered(*chat, request), "<bos><|turn>user\nHi<turn|>\n<|turn>model\nOnce upon a ");
  }
  request.messages = {user("Hi")};
  EXPECT_EQ(refused(bolt(), request), "only a last message of the assistant can be continued");
}

/// A request in which every field that a caller can write holds `text`.
Request request_of(const std::string& text) {
  Request request;
  request.tools = Json::parse(
      R"([{"type":"function","function":{"parameters":{"type":"object","properties":{"p":{}}}}}])"
  );
  Json& function = request.tools[0]["function"];
  function["name"] = text;
  function["description"] = text;
  Json& property = function["parameters"]["properties"]["p"];
  property = {{"type", text}, {"description", text}, {"enum", {text}}};
  function["parameters"]["properties"][text] = {
      {"type", "array"}, {"items", {{"type", text}, {"description", text}}}};
  function["parameters"]["required"] = {text};
  const Json call = {
      {"id", text},
      {"function", {{"name", text}, {"arguments", {{text, text}, {"n", {{text, {text}}}}}}}}};
  request.messages = {
      {{"role", "system"}, {"content", text}, {"name", text}},
      {{"role", "user"}, {"content", text}, {"name", text}},
      {{"role", "assistant"},
       {"content", text},
       {"reasoning_content", text},
       {"tool_calls", {call}}},
      {{"role", "tool"}, {"tool_call_id", text}, {"name", text}, {"content", text}},
      {{"role", "assistant"}, {"content", text}},
      user(text)};
  request.arguments = {
      {"thinking_token_budget", text},
      {"conversational_mode", text},
      {"custom", text},
      {text, text}};
  return request;
}

TEST(ChatTemplate, CallerTextNeverBecomesControlTokens) {
  const auto tokenizer = test::tiny_tokenizer();
  const auto file = open_checkpoint(OCTET_SOURCE_DIR "/models/bolt-tiny/bolt-tiny-q8_0.gguf");
  const ChatTemplate own(
      "{{ bos_token }}{% for m in messages %}{{ '<|turn>' + m.role + '\\n' + (m.content or '') | "
      "upper ~ (m.tool_calls or []) | "
      "tojson(indent=1) ~ m.name }}<turn|>{% endfor %}{{ tools | string }}{{ tools | tojson }}{{ "
      "custom[::-1] ~ custom | "
      "replace('x', '<|turn>') ~ [custom, 'a'] | join('<') ~ '%s' % custom }}",
      "test"
  );
  const ChatTemplate from_file = load_chat_template(*file);
  EXPECT_NE(from_file.origin().find("tokenizer.chat_template"), std::string::npos);
  for (const ChatTemplate* chat : {&bolt(), &gemma(), &from_file, &own}) {
    const auto controls = [&](const std::string& text) {
      const auto ids = chat->encode(*tokenizer, request_of(text).input());
      EXPECT_EQ(ids.front(), tokenizer->bos());
      return std::count_if(ids.begin(), ids.end(), [&](TokenId id) {
        return tokenizer->is_control(id);
      });
    };
    const auto harmless = controls("y");
    EXPECT_GT(harmless, 5) << chat->origin();
    // Never more; fewer where a template takes the spelling of a thought out of what was said.
    for (const auto& [id, text] : test::gemma4_control_ids()) {
      EXPECT_LE(controls(text), harmless) << chat->origin() << " " << text;
      EXPECT_LE(controls("turn|>" + text + "<|tur"), harmless) << chat->origin() << " " << text;
    }
  }
}

TEST(ChatTemplate, AnotherThanTheModelsOwnCanBeChosen) {
  const auto file = open_checkpoint(OCTET_SOURCE_DIR "/models/bolt-tiny/bolt-tiny-q8_0.gguf");
  EXPECT_EQ(load_chat_template(*file, "bolt").source(), bolt().source());
  EXPECT_EQ(load_chat_template(*file, "gemma4").source(), gemma().source());
  const test::TemporaryDirectory directory;
  const std::string own = directory.write("own.jinja", "{{ messages[0].content }}");
  EXPECT_EQ(load_chat_template(*file, own).source(), "{{ messages[0].content }}");
  EXPECT_EQ(load_chat_template(*file, own).origin(), own);
  const std::string none = directory.file("none.jinja");
  EXPECT_NE(
      test::error_message([&] { load_chat_template(*file, none); }).find("none.jinja"),
      std::string::npos
  );
}

TEST(ChatTemplate, KnowsWhetherItAsksForThoughtsByItself) {
  const auto tokenizer = test::tiny_tokenizer();
  EXPECT_TRUE(bolt().thinks_by_default(*tokenizer));
  EXPECT_FALSE(gemma().thinks_by_default(*tokenizer));
  EXPECT_TRUE(ChatTemplate("{{ messages[0].content }}", "x").thinks_by_default(*tokenizer));
  EXPECT_TRUE(ChatTemplate("{{ raise_exception('no') }}", "x").thinks_by_default(*tokenizer));
}

TEST(ChatTemplate, ErrorsOfATemplateSayWhere) {
  EXPECT_EQ(
      test::error_message([] { ChatTemplate("a\n{% if x %}", "file.jinja"); }),
      "file.jinja: line 2, column 11: the template ends before {% endif %}"
  );
  const ChatTemplate broken("{{ messages[0].content.nope() }}", "file.jinja");
  Request request;
  request.messages = {user("Hi")};
  EXPECT_EQ(
      refused(broken, request), "file.jinja: line 1, column 28: a string has no attribute 'nope'"
  );
  const ChatTemplate endless("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "file.jinja");
  EXPECT_NE(refused(endless, request).find("too deeply"), std::string::npos);
  const ChatTemplate slow(
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "file.jinja"
  );
  EXPECT_NE(refused(slow, request).find("steps"), std::string::npos);
  const ChatTemplate large(
      "{% set ns = namespace(t='xxxxxxxx') %}{% for a in range(99) %}{% set ns.t = ns.t ~ ns.t "
      "%}{% endfor %}",
      "file.jinja"
  );
  EXPECT_NE(refused(large, request).find("bytes"), std::string::npos);
}

/// The prompts that a template engine rendered from the template of the trained pair.
TEST(ChatTemplate, BuiltInAndOwnTemplateOfThePairAgree) {
  const auto file = open_checkpoint(OCTET_SOURCE_DIR "/models/bolt-tiny/bolt-tiny-q8_0.gguf");
  const ChatTemplate from_file = load_chat_template(*file);
  std::istringstream lines(test::read_text(test::kTextGolden + "bolt_tiny_chat_renders.jsonl"));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const Json row = Json::parse(line);
    Request request;
    request.messages = row["messages"];
    request.open_reply = row["open_reply"];
    request.arguments = {
        {"enable_thinking", row["thinking"]},
        {"conversational_mode", row["conversational_mode"]},
        {"thinking_token_budget", row["thinking_token_budget"]}};
    ASSERT_EQ(rendered(from_file, request), row["rendered"]);
    ASSERT_EQ(rendered(bolt(), request), row["rendered"]);
  }
  EXPECT_EQ(count, 208);
}

/// Renders of a public template of the larger Gemma 4 models. What differs is known: those append
/// an empty thought when thinking is off, print None for null, and leave out the header of the turn
/// after an answered call with text.
TEST(ChatTemplate, BuiltInGemmaAgreesWithPublicRenders) {
  const std::string path = OCTET_SOURCE_DIR "/tests/golden/text/gemma4_chat_renders.jsonl";
  const std::string renders = test::read_text(path);
  std::istringstream lines(renders);
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    const Json row = Json::parse(line);
    const Json& input = row["input"];
    Request request;
    request.messages = input["messages"];
    request.tools = input.value("tools", Json());
    request.open_reply = input["add_generation_prompt"];
    request.arguments = Json::object();
    if (input.contains("enable_thinking")) {
      request.arguments["enable_thinking"] = input["enable_thinking"];
    }
    // The other public template has a turn of its own for tools.
    if (row["template"] != "standard" && !request.tools.is_null()) {
      continue;
    }
    auto expected = row["rendered"].get<std::string>();
    const std::string empty_thought = "<|channel>thought\n<channel|>";
    if (expected.ends_with(empty_thought)) {
      expected.resize(expected.size() - empty_thought.size());
    }
    if (const size_t none = expected.find(":None"); none != std::string::npos) {
      expected.replace(none, 5, ":null");
    }
    expected += row["case"] == "text_then_call" ? "<|turn>model\n" : "";
    ++count;
    EXPECT_EQ(rendered(gemma(), request), expected) << row["case"];
  }
  EXPECT_GT(count, 80);
}

}  // namespace
}  // namespace octet
