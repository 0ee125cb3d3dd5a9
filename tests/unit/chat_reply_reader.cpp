// Replies as deltas: tool calls as JSON, whatever the model writes and however it is cut.
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "octet/chat/reply_reader.h"
#include "support/byte_tokens.h"
#include "support/tokenizer_fixtures.h"

namespace octet {
namespace {

struct Parsed {
  std::string name;
  std::string arguments;
  bool complete = false;
};

Parsed parse_in_pieces(std::string_view text, std::mt19937_64& random) {
  ToolCallParser parser;
  Parsed out;
  while (!text.empty()) {
    const size_t size = std::min<size_t>(text.size(), 1 + random() % 7);
    parser.push(text.substr(0, size), out.arguments);
    text.remove_prefix(size);
  }
  out.complete = parser.finish(out.arguments);
  out.name = parser.has_name() ? parser.name() : "";
  return out;
}

/// The arguments; every cut gives the same.
std::string arguments(std::string_view text, bool complete = true) {
  std::mt19937_64 random(1);
  const Parsed first = parse_in_pieces(text, random);
  EXPECT_EQ(first.complete, complete) << text << " " << first.arguments;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(parse_in_pieces(text, random).arguments, first.arguments) << text;
  }
  EXPECT_TRUE(first.name.empty() || nlohmann::json::accept(first.arguments)) << first.arguments;
  return first.arguments;
}

TEST(ToolCallParser, ValuesOfTheModelsSyntax) {
  EXPECT_EQ(arguments("call:f{}"), "{}");
  EXPECT_EQ(
      arguments("call:f{a:<|\"|>x<|\"|>,b:2,c:-1.5e3,d:true,e:null,f:[1,[2],{}],g:{h:<|\"|><|\"|>}}"
      ),
      R"({"a":"x","b":2,"c":-1.5e3,"d":true,"e":null,"f":[1,[2],{}],"g":{"h":""}})"
  );
  EXPECT_EQ(
      arguments("call:f{a:<|\"|>say \"hi\" {\"a\":\"b\"} \\ \n<|\"|>}"),
      R"({"a":"say \"hi\" {\"a\":\"b\"} \\ \n"})"
  );
  EXPECT_EQ(arguments("call:f{a:<|\"|>x<|\"y<|<|\"|>}"), R"({"a":"x<|\"y<|"})");
  EXPECT_EQ(arguments(" call: f { a : 1 , <|\"|>b<|\"|> : 2 } "), R"({"a":1,"b":2})");
}

TEST(ToolCallParser, WhatModelsWriteInstead) {
  EXPECT_EQ(
      arguments(R"(call:f{list:["a",'b'],o:{"k": "v"}})"), R"({"list":["a","b"],"o":{"k":"v"}})"
  );
  EXPECT_EQ(
      arguments(R"(call:f{"a":"x\n\"y\\\u00e9\ud83e\udd9c"})"),
      "{\"a\":\"x\\n\\\"y\\\\\xC3\xA9\xF0\x9F\xA6\x9C\"}"
  );
  EXPECT_EQ(
      arguments("call:f{a:True,b:None,c:hello world,d:14:05,e:01,f:1e308,g:1e309}"),
      R"({"a":true,"b":null,"c":"hello world","d":"14:05","e":"01","f":1e308,"g":"1e309"})"
  );
  EXPECT_EQ(arguments("call:f{a:1,}"), R"({"a":1})");
  EXPECT_EQ(arguments("call:f{a:,b:2}"), R"({"a":null,"b":2})");
  EXPECT_EQ(arguments("call:f{a:[1,2}", false), R"({"a":[1,2]})");
  EXPECT_EQ(arguments("call:f{a:1} and more", false), R"({"a":1})");
  EXPECT_EQ(arguments("call:f{a:<|\"|>cut", false), R"({"a":"cut"})");
  EXPECT_EQ(arguments("call:f{a:[1,{b:", false), R"({"a":[1,{"b":null}]})");
  EXPECT_EQ(arguments("call:f{a:tru", false), R"({"a":"tru"})");
  EXPECT_EQ(arguments("call:f{a", false), "{}");
  EXPECT_EQ(arguments("hello", false), "");
  EXPECT_EQ(arguments("call:no args", false), "");
  std::string deep = "call:f{a:" + std::string(1000, '[');
  EXPECT_TRUE(nlohmann::json::accept(arguments(deep, false)));
}

std::string shown(const std::vector<ReplyDelta>& deltas) {
  std::string line;
  ReplyDeltaKind last = ReplyDeltaKind::kToolCallEnd;
  for (const ReplyDelta& delta : deltas) {
    const bool joins = delta.kind == last && delta.kind != ReplyDeltaKind::kToolCall;
    line.append(joins ? "" : fmt::format("|{}", "TESCAX"[static_cast<int>(delta.kind)]));
    line.append(delta.text);
    line.append(delta.kind == ReplyDeltaKind::kToolCallEnd && !delta.complete ? "!" : "");
    last = delta.kind == ReplyDeltaKind::kToolCallEnd ? ReplyDeltaKind::kThinkingEnd : delta.kind;
  }
  return line;
}

std::vector<ReplyDelta> read(std::string_view text, const std::vector<std::string>& tools) {
  ReplyReader reader(test::tiny_tokenizer(), tools);
  std::vector<ReplyDelta> deltas;
  for (const TokenId token : test::tiny_tokenizer()->encode(text, SpecialTokens::kParse)) {
    reader.push(token, deltas);
  }
  reader.finish(deltas);
  return deltas;
}

TEST(ReplyReader, ThoughtSpeechAndCalls) {
  EXPECT_EQ(
      shown(read(
          "<|channel>thought\nHm.<channel|>One "
          "moment.<|tool_call>call:f{a:1}<tool_call|><|tool_call>call:g{b:<|\"|>x<|\"|>}<"
          "tool_call|><|tool_response>",
          {"f", "g"}
      )),
      "|THm.|E|SOne moment.|Cf|A{\"a\":1}|X|Cg|A{\"b\":\"x\"}|X"
  );
}

TEST(ReplyReader, CallsThatAreNone) {
  EXPECT_EQ(shown(read("<|tool_call>call:unknown{a:1}<tool_call|>", {"f"})), "|Scall:unknown{a:1}");
  EXPECT_EQ(shown(read("<|tool_call>nothing<tool_call|>x", {"f"})), "|Snothingx");
  EXPECT_EQ(shown(read("<|tool_call>call:f{a:[1<turn|>", {"f"})), "|Cf|A{\"a\":[1]}|X!");
  EXPECT_EQ(
      shown(read("<|tool_call>call:f{a:1<|tool_call>call:f{b:2}<tool_call|>", {"f"})),
      "|Cf|A{\"a\":1}|X!|Cf|A{\"b\":2}|X"
  );
  EXPECT_EQ(shown(read("<|tool_call>call:f", {"f"})), "|Scall:f");
}

/// What is no call of ours is speech, and speech has no control tokens.
TEST(ReplyReader, CallsThatAreSpeechShowNoControlTokens) {
  EXPECT_EQ(
      shown(read("<|tool_call>call:unknown{a:<|\"|>x<|\"|>}<tool_call|>y", {"f"})),
      "|Scall:unknown{a:\"x\"}y"
  );
  EXPECT_EQ(shown(read("<|tool_call>a <|\"|><tool_call|>", {"f"})), "|Sa \"");
  EXPECT_EQ(shown(read("<|tool_call>a <|x <|\"", {"f"})), "|Sa <|x <|\"");
  // A call wrapped in another, and arguments by position, as some models write them.
  EXPECT_EQ(
      shown(read("<|tool_call>call:tool_call{id:<|\"|>f<|\"|>,arguments:{a:1}}<tool_call|>", {"f"})
      ),
      "|Scall:tool_call{id:\"f\",arguments:{a:1}}"
  );
  EXPECT_EQ(
      shown(read("<|tool_call>f BEGIN_ARG x END_ARG<tool_call|>", {"f"})), "|Sf BEGIN_ARG x END_ARG"
  );
}

/// Source code as an argument: long, with quotes of all kinds, braces and line ends.
TEST(ReplyReader, LongTextsOfManyLinesComeBackExactly) {
  std::string code;
  for (int i = 0; code.size() < 5000; ++i) {
    code +=
        fmt::format("def f{}(a):\n\treturn {{'k': \"v\\n\", \"q\": [a, {}]}}  # <|x|> é\r\n", i, i);
  }
  const auto deltas = read(
      "<|tool_call>call:f{path:<|\"|>a.py<|\"|>,text:<|\"|>" + code + "<|\"|>}<tool_call|>", {"f"}
  );
  std::string arguments;
  for (const ReplyDelta& delta : deltas) {
    if (delta.kind == ReplyDeltaKind::kToolCallArguments) {
      arguments += delta.text;
    }
  }
  const auto json = nlohmann::json::parse(arguments);
  EXPECT_EQ(json["text"].get<std::string>(), code);
  EXPECT_EQ(json["path"], "a.py");
}

/// However a reply is spelled in tokens, one at a time, its deltas join to the same.
TEST(ReplyReader, EveryTokenisationGivesTheSame) {
  const auto tokenizer = test::tiny_tokenizer();
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  const std::vector<std::string> parts = {
      "<|channel>thought\n",
      "<channel|>",
      "<|tool_call>",
      "<tool_call|>",
      "<|\"|>",
      "call:f{",
      "call:g{a:",
      "}",
      "[",
      "]",
      ",",
      ":",
      "key",
      "\"q\\n\"",
      "'s'",
      "12",
      "-3.5",
      "true",
      "nul",
      " ",
      "\n",
      "text and words",
      "\xC3\xA9\xF0\x9F\xA6\x9C"};
  for (int round = 0; round < 400; ++round) {
    std::vector<TokenId> whole;
    std::vector<TokenId> bytes;
    for (uint64_t i = 0, n = random() % 20; i < n; ++i) {
      const std::string& part = parts[random() % parts.size()];
      for (const TokenId token : tokenizer->encode(part, SpecialTokens::kParse)) {
        whole.push_back(token);
        if (tokenizer->is_control(token)) {
          bytes.push_back(token);
          continue;
        }
        const auto single = test::byte_tokens(*tokenizer, tokenizer->bytes(token));
        bytes.insert(bytes.end(), single.begin(), single.end());
      }
    }
    const auto read_tokens = [&](const std::vector<TokenId>& tokens) {
      ReplyReader reader(tokenizer, {});
      std::vector<ReplyDelta> deltas;
      for (const TokenId token : tokens) {
        reader.push(token, deltas);
      }
      reader.finish(deltas);
      return deltas;
    };
    const auto deltas = read_tokens(whole);
    ASSERT_EQ(shown(deltas), shown(read_tokens(bytes))) << tokenizer->decode(whole);
    std::string call;
    for (const ReplyDelta& delta : deltas) {
      call = delta.kind == ReplyDeltaKind::kToolCall ? "" : call;
      call += delta.kind == ReplyDeltaKind::kToolCallArguments ? delta.text : "";
      if (delta.kind == ReplyDeltaKind::kToolCallEnd) {
        ASSERT_TRUE(nlohmann::json::accept(call)) << call;
      }
    }
  }
}

}  // namespace
}  // namespace octet
