// A reply taken apart token by token: thoughts, speech, tool calls, and what models do wrong.
#include <gtest/gtest.h>

#include "octet/base/utf8.h"
#include "octet/text/reply_parser.h"
#include "support/tokenizer_fixtures.h"

namespace octet {
namespace {

/// The reply as one line: S(speech) T(thought) C(call), "." after a part that was completed, "!" at
/// the end of the reply.
std::string parse(const std::vector<TokenId>& tokens) {
  ReplyParser parser(test::tiny_tokenizer());
  std::vector<ReplyEvent> events;
  for (const TokenId token : tokens) {
    parser.push(token, events);
  }
  parser.finish(events);
  std::string line;
  char open = ' ';
  for (const ReplyEvent& event : events) {
    EXPECT_TRUE(is_valid_utf8(event.text));
    const char part = "STC"[static_cast<int>(event.part)];
    if (part != open) {
      line.append(open == ' ' ? "" : ")").append(1, part).append("(");
      open = part;
    }
    line.append(event.text);
    if (event.complete) {
      line.append(").");
      open = ' ';
    }
  }
  return line.append(open == ' ' ? "" : ")");
}

std::string parse(std::string_view text) {
  return parse(test::tiny_tokenizer()->encode(text, SpecialTokens::kParse));
}

TEST(ReplyParser, PlainSpeech) {
  EXPECT_EQ(parse("Hello world.<turn|>"), "S(Hello world.)");
  EXPECT_EQ(parse(""), "");
}

TEST(ReplyParser, ThoughtThenSpeech) {
  EXPECT_EQ(
      parse("<|channel>thought\nI add 1 and 2.\n<channel|>It is 3.<turn|>"),
      "T(I add 1 and 2.).S(It is 3.)"
  );
  EXPECT_EQ(
      parse("<|channel>thought\nline one\n\n  line two <channel|>yes"),
      "T(line one\n\n  line two).S(yes)"
  );
}

TEST(ReplyParser, TolerantOfChannels) {
  EXPECT_EQ(parse("<|channel>thought\n<channel|>yes"), "T().S(yes)");
  EXPECT_EQ(parse("<|channel>thought<channel|>yes"), "T().S(yes)");
  EXPECT_EQ(parse("yes<|channel>thought\n<channel|>"), "S(yes)T().");
  EXPECT_EQ(parse("yes<channel|><turn|>"), "S(yes)");
  EXPECT_EQ(parse("<|channel><|channel>thought\nhm<channel|>yes"), "T(hm).S(yes)");
  EXPECT_EQ(parse("<|channel>final\nyes<channel|>"), "S(final\nyes)");
  EXPECT_EQ(parse("<|channel>thoughtful<channel|>"), "S(thoughtful)");
  EXPECT_EQ(parse("<|channel><channel|>yes"), "S(yes)");
}

TEST(ReplyParser, CutThoughtIsNotComplete) {
  EXPECT_EQ(parse("<|channel>thought\nI was cut \n"), "T(I was cut)");
  EXPECT_EQ(parse("<|channel>thou"), "");
}

TEST(ReplyParser, ToolCallsAreRaw) {
  EXPECT_EQ(
      parse("One "
            "moment.<|tool_call>call:f{a:<|\"|>x\ny<|\"|>,b:2}<tool_call|><|tool_call>call:g{}<"
            "tool_call|><|tool_response>"),
      "S(One moment.)C(call:f{a:<|\"|>x\ny<|\"|>,b:2}).C(call:g{})."
  );
  EXPECT_EQ(parse("<|tool_call>call:f{a:"), "C(call:f{a:)");
}

TEST(ReplyParser, CharactersFromByteTokens) {
  const auto tokenizer = test::tiny_tokenizer();
  const std::vector<TokenId> emoji = tokenizer->encode("\xF0\x9F\xA6\x99", SpecialTokens::kPlain);
  ASSERT_EQ(emoji.size(), 4U);
  EXPECT_EQ(parse(emoji), "S(\xF0\x9F\xA6\x99)");
  // A thought that ends inside a character.
  std::vector<TokenId> cut = tokenizer->encode("<|channel>thought\nx", SpecialTokens::kParse);
  cut.push_back(emoji[0]);
  cut.push_back(tokenizer->chat_tokens().channel_close);
  EXPECT_EQ(parse(cut), "T(x\xEF\xBF\xBD).");
}

/// What a reply of `text` is after a prompt.
std::string parse_after(std::string_view prompt, std::string_view text) {
  const auto tokenizer = test::tiny_tokenizer();
  ReplyParser parser(tokenizer);
  parser.start(tokenizer->encode(prompt, SpecialTokens::kParse));
  std::vector<ReplyEvent> events;
  for (const TokenId token : tokenizer->encode(text, SpecialTokens::kParse)) {
    parser.push(token, events);
  }
  parser.finish(events);
  std::string line;
  char last = ' ';
  for (const ReplyEvent& event : events) {
    const char part = "STC"[static_cast<int>(event.part)];
    line.append(part == last ? "" : std::string(1, part)).append(event.text);
    line.append(event.complete ? "." : "");
    last = part;
  }
  return line;
}

TEST(ReplyParser, StartsWhereThePromptEnds) {
  EXPECT_EQ(parse_after("<|turn>model\n", "a"), "Sa");
  EXPECT_EQ(parse_after("<|turn>model\n<|channel>thought\n", "a<channel|>b"), "Ta.Sb");
  EXPECT_EQ(parse_after("<|turn>model\n<|channel>thou", "ght\na<channel|>b"), "Ta.Sb");
  EXPECT_EQ(parse_after("<|turn>model\n<|channel>thought\nfirst", "a<channel|>b"), "Ta.Sb");
  EXPECT_EQ(parse_after("<|turn>model\n<|channel>thought\n<channel|>", "a"), "Sa");
  EXPECT_EQ(parse_after("<|turn>model\n<|channel>thought\nx<channel|>y", "a"), "Sa");
  EXPECT_EQ(parse_after("<|turn>model\nx<|tool_call>call:", "f{}<tool_call|>b"), "Cf{}.Sb");
  EXPECT_EQ(parse_after("<|channel>thought\n<turn|><|turn>model\n", "a"), "Sa");
  EXPECT_EQ(parse_after("", "a"), "Sa");
}

TEST(ReplyParser, IsAsNewAfterFinish) {
  ReplyParser parser(test::tiny_tokenizer());
  std::vector<ReplyEvent> events;
  parser.push(test::tiny_tokenizer()->chat_tokens().tool_call_open, events);
  parser.finish(events);
  EXPECT_TRUE(events.empty());
  parser.push(test::tiny_tokenizer()->find("a"), events);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].part, ReplyPart::kSpeech);
}

}  // namespace
}  // namespace octet
