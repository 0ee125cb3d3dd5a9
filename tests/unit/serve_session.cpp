// One generation from request to the bytes that a client gets, with a scripted target and a
// connection that is no network.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "octet/engine/engine.h"
#include "octet/serve/api_error.h"
#include "octet/serve/reply_session.h"
#include "octet/speculation/drafters/no_drafter.h"
#include "support/byte_tokens.h"
#include "support/scripted_target.h"
#include "support/served_model.h"

namespace octet::serve {
namespace {

using test::served_model;

/// Keeps what a session sends. Its strand is the thread that calls run().
class FakeExchange final : public HttpExchange {
 public:
  void reply(HttpReply answer) override {
    whole = std::move(answer);
    over_ = true;
  }
  void open_stream(HttpReply head) override { stream_head = std::move(head); }
  bool write(std::string text) override {
    if (on_write) {
      on_write(*this, ++writes_);
    }
    stream += text;
    return true;
  }
  void close() override { over_ = true; }
  void on_gone(std::function<void()> call) override { gone = std::move(call); }
  void post(std::function<void()> call) override {
    const std::lock_guard lock(mutex_);
    if (!deaf_) {
      calls_.push_back(std::move(call));
      wake_.notify_one();
    }
  }

  /// Runs what is posted until the answer is complete.
  void run() {
    while (!over_) {
      std::function<void()> call;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this] { return !calls_.empty(); });
        call = std::move(calls_.front());
        calls_.pop_front();
      }
      call();
    }
  }

  /// Calls that wait, and later ones, would keep their session, which keeps this exchange.
  void drop_calls() {
    std::deque<std::function<void()>> dropped;
    const std::lock_guard lock(mutex_);
    deaf_ = true;
    dropped.swap(calls_);
  }

  std::function<void(const FakeExchange& self, int count)> on_write;
  std::function<void()> gone;
  HttpReply whole;
  HttpReply stream_head;
  std::string stream;

 private:
  int writes_ = 0;
  bool over_ = false;
  bool deaf_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> calls_;
};

/// A target that writes `text`, then its end.
test::ScriptedTarget writer(
    std::vector<TokenId> text, int64_t prompt_length, std::chrono::milliseconds pace
) {
  text.push_back(served_model().tokenizer->stop_ids()[0]);
  return {
      served_model().vocabulary,
      [text = std::move(text),
       prompt_length,
       pace](std::span<const TokenId> prefix, std::span<float> logits) {
        std::this_thread::sleep_for(pace);
        const auto at = static_cast<size_t>(std::ssize(prefix) - prompt_length);
        std::ranges::fill(logits, 0.0F);
        logits[static_cast<size_t>(at < text.size() ? text[at] : text.back())] = 9.0F;
      }};
}

GenerationRequest request_of(const Json& more) {
  if (more.contains("prompt")) {
    return read_completion_request(more, served_model());
  }
  Json body = {
      {"messages", Json::array({Json{{"role", "user"}, {"content", "Hello."}}})},
      {"temperature", 0},
      {"reasoning_effort", "none"}};
  body.update(more);
  return read_chat_request(body, served_model());
}

/// When the client's thread looks at what the engine has done.
enum class Reader : uint8_t { kPrompt, kLate };

/// A step of a target that takes its time.
constexpr std::chrono::milliseconds kSlowly(5);

struct Served {
  std::shared_ptr<FakeExchange> exchange = std::make_shared<FakeExchange>();
  int ends = 0;
  bool broke_off = false;
};

/// The target's text under a request.
Served serve(
    const std::vector<TokenId>& text,
    const Json& more,
    std::function<void(const FakeExchange&, int)> on_write = nullptr,
    Reader reader = Reader::kPrompt,
    std::chrono::milliseconds pace = std::chrono::milliseconds(0)
) {
  Served served;
  served.exchange->on_write = std::move(on_write);
  GenerationRequest request = request_of(more);
  test::ScriptedTarget target = writer(text, std::ssize(request.prompts[0]), pace);
  NoDrafter none;
  EngineOptions options;
  options.context_length = 512;
  Engine engine(target, none, served_model().tokenizer, options);
  ReplyHead head;
  head.id = "id";
  const auto session = std::make_shared<ReplySession>(
      served_model(),
      std::move(request),
      head,
      served.exchange,
      [&](const std::string&) { ++served.ends; }
  );
  session->start(engine);
  while (reader == Reader::kLate && !engine.idle()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  try {
    served.exchange->run();
  } catch (const std::runtime_error&) {
    served.broke_off = true;
  }
  served.exchange->drop_calls();
  return served;
}

std::string content_of(const Served& served) {
  return Json::parse(served.exchange->whole.body)["choices"][0]["message"]["content"];
}

std::vector<Json> chunks_of(const std::string& events) {
  std::vector<Json> chunks;
  for (size_t at = events.find("data: {"); at != std::string::npos;
       at = events.find("data: {", at + 1)) {
    chunks.push_back(Json::parse(events.substr(at + 6, events.find("\n\n", at) - at - 6)));
  }
  return chunks;
}

/// All deltas of content.
std::string streamed_content(const std::string& events) {
  std::string content;
  for (const Json& chunk : chunks_of(events)) {
    if (!chunk["choices"].empty() && chunk["choices"][0]["delta"].contains("content")) {
      content += chunk["choices"][0]["delta"]["content"].get<std::string>();
    }
  }
  return content;
}

std::vector<TokenId> bytes_one_by_one(std::string_view text) {
  return test::byte_tokens(*served_model().tokenizer, text);
}

// A stop string that begins among the first tokens does not count, be it by half a character.
TEST(ServeSession, StopStringsCountBehindTheLeastTokens) {
  const std::vector<TokenId> text = bytes_one_by_one(
      "a\xF0\x9F\xA6\x8E"
      "b\xF0\x9F\xA6\x8E"
      "c"
  );
  const std::string lizard = "\xF0\x9F\xA6\x8E";
  const std::vector<std::pair<int, std::string>> cases = {
      {0, "a"},
      {1, "a"},
      {2, "a" + lizard + "b"},
      {4, "a" + lizard + "b"},
      {5, "a" + lizard + "b"},
      {6, "a" + lizard + "b"},
      {7, "a" + lizard + "b" + lizard + "c"},
      {9, "a" + lizard + "b" + lizard + "c"}};
  for (const auto& [least, expected] : cases) {
    SCOPED_TRACE(least);
    const Json more = {{"stop", lizard}, {"min_tokens", least}};
    const Served whole = serve(text, more);
    EXPECT_EQ(content_of(whole), expected);
    EXPECT_EQ(whole.ends, 1);
    Json streamed = more;
    streamed["stream"] = true;
    EXPECT_EQ(streamed_content(serve(text, streamed).exchange->stream), expected);
  }
}

std::vector<TokenId> tokens_of(const std::string& text) {
  return served_model().tokenizer->encode(text, SpecialTokens::kParse);
}

Json tool_request(const Json& more) {
  Json request = {
      {"tools",
       Json::array({Json{
           {"type", "function"},
           {"function",
            {{"name", "f"},
             {"parameters", {{"type", "object"}, {"properties", {{"a", {{"type", "string"}}}}}}}}}}}
       )}};
  request.update(more);
  return request;
}

// Of two calls where one was asked for, the second never was, however late the engine hears of it.
TEST(ServeSession, WhatIsCutCountsNowhere) {
  const std::vector<TokenId> one = tokens_of("Yes.<|tool_call>call:f{a:1}<tool_call|>");
  std::vector<TokenId> two = one;
  const std::vector<TokenId> more = tokens_of("<|tool_call>call:f{a:2}<tool_call|> and on and on");
  two.insert(two.end(), more.begin(), more.end());
  const Json request =
      tool_request({{"parallel_tool_calls", false}, {"logprobs", true}, {"max_tokens", 200}});
  for (const Reader reader : {Reader::kPrompt, Reader::kLate}) {
    const Served served = serve(two, request, nullptr, reader);
    const Json reply = Json::parse(served.exchange->whole.body);
    const Json& choice = reply["choices"][0];
    EXPECT_EQ(choice["message"]["tool_calls"].size(), 1U) << reply.dump();
    EXPECT_EQ(choice["finish_detail"], "one_tool_call");
    EXPECT_EQ(reply["usage"]["completion_tokens"], one.size());
    EXPECT_EQ(choice["logprobs"]["content"].size(), one.size());
  }
}

// Stop strings are for what is said: a thought or a call may hold them.
TEST(ServeSession, StopStringsCountInSpeechAlone) {
  const std::string thought = "<|channel>thought\nI stop here.<channel|>";
  const std::string call = "<|tool_call>call:f{a:<|\"|>stop<|\"|>}<tool_call|>";
  for (const Reader reader : {Reader::kPrompt, Reader::kLate}) {
    const Json think = {{"stop", "stop"}, {"reasoning_effort", "high"}, {"max_tokens", 200}};
    const Served said = serve(tokens_of(thought + "Now I stop there."), think, nullptr, reader);
    const Json reply = Json::parse(said.exchange->whole.body);
    EXPECT_EQ(reply["choices"][0]["message"]["content"], "Now I ") << reply.dump();
    EXPECT_EQ(reply["choices"][0]["message"]["reasoning_content"], "I stop here.");
    EXPECT_EQ(reply["choices"][0]["finish_detail"], "stop_string");
    const Served called =
        serve(tokens_of("Well." + call), tool_request({{"stop", "stop"}}), nullptr, reader);
    const Json calls = Json::parse(called.exchange->whole.body);
    ASSERT_EQ(calls["choices"][0]["message"]["tool_calls"].size(), 1U) << calls.dump();
    EXPECT_EQ(
        calls["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"], R"({"a":"stop"})"
    );
    EXPECT_EQ(calls["choices"][0]["finish_reason"], "tool_calls");
  }
}

// Nor does one reach from speech across a thought, and what it had held back is said.
TEST(ServeSession, NoStopStringReachesAcrossAThought) {
  const Json request = {{"stop", "ab"}, {"reasoning_effort", "high"}, {"max_tokens", 200}};
  const Served served = serve(tokens_of("Oh a<|channel>thought\nno<channel|>b, cab."), request);
  EXPECT_EQ(content_of(served), "Oh ab, c");
}

TEST(ServeSession, ThoughtsAreCountedWithoutTheirLabel) {
  const std::vector<TokenId> inside = tokens_of("I see it all.");
  const Served served = serve(
      tokens_of("<|channel>thought\nI see it all.<channel|>Yes."),
      {{"reasoning_effort", "high"}, {"max_tokens", 200}}
  );
  const Json usage = Json::parse(served.exchange->whole.body)["usage"];
  EXPECT_EQ(usage["completion_tokens_details"]["reasoning_tokens"], inside.size());
}

/// The first choice's message and the tokens of thought, of a whole answer.
struct Said {
  Json message;
  Json reasoning_tokens;
};

Said said_in(const Served& served) {
  const Json reply = Json::parse(served.exchange->whole.body);
  return {
      reply["choices"][0]["message"],
      reply["usage"]["completion_tokens_details"]["reasoning_tokens"]};
}

// An end token that is to be ignored ends no thought, for nobody.
TEST(ServeSession, ABudgetHoldsWhereEndTokensAreIgnored) {
  const std::string end(served_model().tokenizer->piece(served_model().tokenizer->stop_ids()[0]));
  std::string thought = "<|channel>thought\nI stop";
  for (int i = 0; i < 12; ++i) {
    thought += end + " here.";
  }
  const Json more = {
      {"ignore_eos", true},
      {"thinking_token_budget", 8},
      {"reasoning_effort", "high"},
      {"max_tokens", 60}};
  const Said said = said_in(serve(tokens_of(thought), more));
  EXPECT_EQ(said.reasoning_tokens, 6) << "of 8, two were end tokens: " << said.message;
  const std::string told = said.message["reasoning_content"];
  EXPECT_LE(tokens_of(told).size(), 8U) << told;
  EXPECT_TRUE(told.starts_with("I stop here.")) << told;
  const Json stop = {
      {"ignore_eos", true}, {"stop", "here"}, {"reasoning_effort", "high"}, {"max_tokens", 200}};
  const Said spoken = said_in(serve(tokens_of(thought + "<channel|>Not now but here."), stop));
  EXPECT_EQ(spoken.message["content"], "Not now but ") << spoken.message;
}

// For those who read the reply, a call ends the thought that it begins in.
TEST(ServeSession, ABudgetOfThoughtDoesNotBreakACall) {
  const Json more =
      tool_request({{"thinking_token_budget", 6}, {"reasoning_effort", "high"}, {"max_tokens", 200}}
      );
  const Said said = said_in(serve(
      tokens_of("<|channel>thought\nWell.<|tool_call>call:f{a:<|\"|>one two three four five six "
                "seven<|\"|>}<tool_call|>"),
      more
  ));
  ASSERT_EQ(said.message["tool_calls"].size(), 1U) << said.message;
  EXPECT_EQ(
      said.message["tool_calls"][0]["function"]["arguments"],
      R"({"a":"one two three four five six seven"})"
  );
  EXPECT_EQ(said.reasoning_tokens, tokens_of("Well.").size());
}

// Characters, from the beginning of the text, in whatever chunks it comes.
TEST(ServeSession, TextOffsetsGoOnFromChunkToChunk) {
  const std::vector<TokenId> text = bytes_one_by_one(
      "a\xF0\x9F\xA6\x8E"
      "b\xC3\xA9"
      "c"
  );
  const Json expected = {0, 1, 1, 1, 1, 2, 3, 3, 4, 5};  // the end token is told, too
  Json more = {{"prompt", "Hello."}, {"temperature", 0}, {"logprobs", 0}};
  const Json whole = Json::parse(serve(text, more).exchange->whole.body);
  EXPECT_EQ(whole["choices"][0]["logprobs"]["text_offset"], expected) << whole;
  more["stream"] = true;
  Json told = Json::array();
  for (const Json& chunk : chunks_of(serve(text, more).exchange->stream)) {
    const Json scores = chunk["choices"][0]["logprobs"];
    for (const Json& offset : scores.is_null() ? Json::array() : scores["text_offset"]) {
      told.push_back(offset);
    }
  }
  EXPECT_EQ(told, expected);
}

// Without a clause that a voice could speak a reply ends by its time for that; with one it goes on.
TEST(ServeSession, WithoutAClauseAReplyEndsByItsDeadline) {
  const auto slow_reply = [](const std::string& text) {
    Json more = {{"first_clause_deadline_ms", 250}, {"max_tokens", 400}};
    return Json::parse(
        serve(tokens_of(text), more, nullptr, Reader::kPrompt, kSlowly).exchange->whole.body
    )["choices"][0];
  };
  std::string words;
  for (int i = 0; i < 60; ++i) {
    words += " on and";
  }
  const Json endless = slow_reply("It goes" + words);
  EXPECT_EQ(endless["finish_detail"], "deadline") << endless;
  EXPECT_TRUE(endless["message"]["content"].get<std::string>().starts_with("It goes"));
  const Json begun = slow_reply("It begins here! Now it goes" + words);
  EXPECT_EQ(begun["finish_detail"], "stop_token") << begun;
}

TEST(ServeSession, ABugInTheMiddleIsToldAndEndsTheReplyAlone) {
  const std::vector<TokenId> text = bytes_one_by_one(std::string(40, 'a'));
  const auto fails_once = [](const FakeExchange& /*exchange*/, int count) {
    if (count == 5) {
      throw std::runtime_error("no such thing");
    }
  };
  const Served served = serve(text, {{"stream", true}}, fails_once);
  const std::string& events = served.exchange->stream;
  EXPECT_NE(events.find("this is a bug of octet: no such thing"), std::string::npos) << events;
  EXPECT_TRUE(events.ends_with("data: [DONE]\n\n")) << events;
  EXPECT_EQ(served.ends, 1) << "its id is free again";
}

// What fails behind the session's own end is the connection's business: it breaks off.
TEST(ServeSession, ABugInTheLastWordsFreesTheId) {
  const std::vector<TokenId> text = bytes_one_by_one("aaa");
  const auto fails_at_the_end = [](const FakeExchange& exchange, int /*count*/) {
    if (exchange.stream.find("\"finish_reason\":\"stop\"") != std::string::npos) {
      throw std::runtime_error("no such thing");
    }
  };
  const Served served = serve(text, {{"stream", true}}, fails_at_the_end);
  EXPECT_TRUE(served.broke_off);
  EXPECT_EQ(served.ends, 1);
}

// Nor does the id stay taken when even the report of a bug fails.
TEST(ServeSession, ABugInTheReportOfABugFreesTheId) {
  const std::vector<TokenId> text = bytes_one_by_one(std::string(40, 'a'));
  const auto fails_from_then_on = [](const FakeExchange& /*exchange*/, int count) {
    if (count >= 5) {
      throw std::runtime_error("no such thing");
    }
  };
  const Served served = serve(text, {{"stream", true}}, fails_from_then_on);
  EXPECT_TRUE(served.broke_off);
  EXPECT_EQ(served.ends, 1);
}

}  // namespace
}  // namespace octet::serve
