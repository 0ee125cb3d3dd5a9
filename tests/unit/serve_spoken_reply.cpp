// What of a reply is kept when only so many characters were heard.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/base/utf8.h"
#include "octet/serve/spoken_reply.h"
#include "octet/text/stream_decoder.h"
#include "support/served_model.h"

namespace octet::serve {
namespace {

const Tokenizer& tokenizer() {
  return *test::served_model().tokenizer;
}

std::vector<TokenId> tokens_of(const std::string& text) {
  return tokenizer().encode(text, SpecialTokens::kPlain);
}

/// Told token by token, as a session does.
SpokenReply told(const std::vector<TokenId>& prompt, const std::vector<TokenId>& reply) {
  SpokenReply spoken(prompt);
  StreamDecoder decoder;
  for (const TokenId token : reply) {
    spoken.add(token, tokenizer().is_control(token) ? "" : decoder.push(tokenizer().bytes(token)));
  }
  return spoken;
}

/// Bytes of the first so many characters.
std::string first_characters(const std::string& text, int64_t count) {
  size_t at = 0;
  for (; count > 0 && at < text.size(); --count) {
    at += static_cast<size_t>(decode_utf8(text, at).length);
  }
  return text.substr(0, at);
}

TEST(SpokenReply, KeepsWholeTokensThatComeAgain) {
  const std::string text =
      "The capital of Finland is Helsinki, \xC3\xA9t\xC3\xA9 \xF0\x9F\xA6\x8E and so on.";
  const std::vector<TokenId> prompt = tokens_of("What is it?");
  std::vector<TokenId> reply = tokens_of(text);
  reply.push_back(tokenizer().stop_ids()[0]);
  const SpokenReply spoken = told(prompt, reply);
  int64_t before = 0;
  for (int64_t heard = 0; heard < 70; ++heard) {
    const SpokenReply::Kept kept = spoken.up_to(heard, tokenizer());
    EXPECT_LE(kept.characters, heard);
    EXPECT_GE(kept.characters, before);
    before = kept.characters;
    EXPECT_EQ(kept.text, first_characters(text, kept.characters));
    const std::vector<TokenId> again = tokens_of(kept.text);
    ASSERT_EQ(kept.tokens, std::ssize(prompt) + std::ssize(again)) << kept.text;
    EXPECT_TRUE(std::equal(again.begin(), again.end(), reply.begin()));
    EXPECT_TRUE(kept.text.empty() || kept.text.back() != ' ');
  }
  EXPECT_GT(before, 40);
  EXPECT_EQ(spoken.up_to(1000, tokenizer()).text, text);
}

TEST(SpokenReply, ThoughtsBeforeSpeechStayWithIt) {
  const ChatTokens& control = tokenizer().chat_tokens();
  SpokenReply spoken(tokens_of("Hello."));
  const auto prompt = std::ssize(spoken.text());
  spoken.add(control.channel_open, "");
  for (const TokenId token : tokens_of("a thought")) {
    spoken.add(token, "");
  }
  spoken.add(control.channel_close, "");
  const auto silent = std::ssize(spoken.text());
  for (const TokenId token : tokens_of("Good day to you.")) {
    spoken.add(token, tokenizer().bytes(token));
  }
  EXPECT_EQ(spoken.up_to(0, tokenizer()).tokens, prompt);
  const SpokenReply::Kept kept = spoken.up_to(9, tokenizer());
  EXPECT_EQ(kept.text, first_characters("Good day to you.", kept.characters));
  EXPECT_EQ(kept.tokens, silent + std::ssize(tokens_of(kept.text)));
}

}  // namespace
}  // namespace octet::serve
