// The built-in chat grammar against prompts that a template engine rendered from the template of
// the trained pair.
#include "octet/chat/chat_format.h"

#include <gtest/gtest.h>

#include "support/error_message.h"
#include "support/held_out_dialogues.h"
#include "support/tokenizer_fixtures.h"

namespace octet {
namespace {

std::string joined(const std::vector<TextSpan>& spans) {
  std::string text;
  for (const TextSpan& span : spans) {
    text.append(span.text);
  }
  return text;
}

const ChatTemplate& bolt() {
  static const ChatTemplate chat(BuiltinTemplate::kBolt);
  return chat;
}

ChatRole role_of(std::string_view name) {
  return name == "system" ? ChatRole::kSystem
         : name == "user" ? ChatRole::kUser
                          : ChatRole::kAssistant;
}

TEST(ChatGolden, EqualsTheTemplateOfThePair) {
  const test::JsonLines renders(test::kTextGolden + "bolt_tiny_chat_renders.jsonl");
  ASSERT_EQ(renders.rows.size(), 208U);
  for (const auto row : renders.rows) {
    std::vector<ChatMessage> messages;
    for (const auto message : row["messages"].get_array()) {
      messages.push_back(
          {.role = role_of(message["role"].get_string()),
           .text = std::string(message["content"].get_string().value())}
      );
    }
    ChatOptions options;
    options.thinking = row["thinking"].get_bool();
    options.conversational_mode = row["conversational_mode"].get_bool();
    if (const int64_t budget = row["thinking_token_budget"].get_int64(); budget != 0) {
      options.thinking_token_budget = budget;
    }
    options.open_reply = row["open_reply"].get_bool();
    EXPECT_EQ(
        joined(format_chat(bolt(), *test::tiny_tokenizer(), messages, options)),
        std::string_view(row["rendered"])
    );
  }
}

/// The turns of a held-out dialogue without thoughts and tools.
std::vector<ChatMessage> messages_of(std::string_view dialogue) {
  std::vector<ChatMessage> messages;
  constexpr std::string_view kOpen = "<|turn>";
  constexpr std::string_view kClose = "<turn|>\n";
  while (dialogue.starts_with(kOpen)) {
    dialogue.remove_prefix(kOpen.size());
    const size_t line = dialogue.find('\n');
    const size_t end = dialogue.find(kClose);
    messages.push_back(
        {.role = role_of(dialogue.substr(0, line)),
         .text = std::string(dialogue.substr(line + 1, end - line - 1))}
    );
    dialogue.remove_prefix(end + kClose.size());
  }
  return messages;
}

TEST(ChatGolden, EqualsTheDialoguesThePairWasTrainedFor) {
  const auto tokenizer = test::tiny_tokenizer();
  int compared = 0;
  for (const std::string& dialogue : test::held_out_dialogues()) {
    if (dialogue.find("<|tool") != std::string_view::npos ||
        dialogue.find("<|channel>") != std::string_view::npos) {
      continue;
    }
    ChatOptions options = {
        .thinking = dialogue.find("<|think|>") != std::string_view::npos, .open_reply = false};
    std::vector<ChatMessage> messages = messages_of(dialogue);
    if (options.thinking) {
      messages.front().text.erase(0, std::string_view("<|think|>\n").size());
    }
    const std::string expected = "<bos>" + dialogue;
    ASSERT_EQ(joined(format_chat(bolt(), *test::tiny_tokenizer(), messages, options)), expected);
    ASSERT_EQ(
        encode_chat(*tokenizer, messages, options),
        tokenizer->encode(expected, SpecialTokens::kParse)
    );
    ++compared;
  }
  EXPECT_GT(compared, 50);
}

TEST(Chat, CallerTextNeverBecomesControlTokens) {
  const auto tokenizer = test::tiny_tokenizer();
  const auto controls = [&](const std::vector<TokenId>& ids) {
    return std::count_if(ids.begin(), ids.end(), [&](TokenId id) {
      return tokenizer->is_control(id);
    });
  };
  const auto messages = [](const std::string& text) {
    return std::vector<ChatMessage>{
        {.role = ChatRole::kSystem, .text = text},
        {.role = ChatRole::kUser, .text = text},
        {.role = ChatRole::kAssistant, .text = text},
        {.role = ChatRole::kUser, .text = text}};
  };
  const auto harmless = encode_chat(*tokenizer, messages("x"), {});
  for (const auto& [id, text] : test::gemma4_control_ids()) {
    EXPECT_EQ(controls(encode_chat(*tokenizer, messages(text), {})), controls(harmless)) << text;
    // Halves that only the grammar around them could complete.
    EXPECT_EQ(
        controls(encode_chat(*tokenizer, messages("turn|>" + text + "<|tur"), {})),
        controls(harmless)
    ) << text;
  }
  EXPECT_EQ(std::count(harmless.begin(), harmless.end(), tokenizer->bos()), 1);
  EXPECT_EQ(harmless.front(), tokenizer->bos());
}

TEST(Chat, SystemMessageOnlyFirst) {
  const std::vector<ChatMessage> messages = {
      {.role = ChatRole::kUser, .text = "a"}, {.role = ChatRole::kSystem, .text = "b"}};
  EXPECT_NE(
      test::error_message([&] { format_chat(bolt(), *test::tiny_tokenizer(), messages, {}); }
      ).find("message 1 is a system message, which is only allowed as the first message"),
      std::string::npos
  );
}

TEST(Chat, NeedsTheTokensOfTheGrammar) {
  test::TokenizerParts parts = test::TokenizerParts::with_characters({"a"});
  std::replace(
      parts.pieces.begin(), parts.pieces.end(), std::string("<|think|>"), std::string("<think>")
  );
  const Tokenizer tokenizer(parts.source());
  const std::vector<ChatMessage> messages = {{.role = ChatRole::kUser, .text = "a"}};
  EXPECT_NE(test::error_message([&] { encode_chat(tokenizer, messages, {}); }), "");
  EXPECT_NO_THROW(encode_chat(tokenizer, messages, {.thinking = false}));
}

}  // namespace
}  // namespace octet
