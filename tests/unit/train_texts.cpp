// Files of texts: good lines, every kind of bad one by number, and the order in which texts come.
#include <set>

#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/train/training_text.h"
#include "support/shipped_tokenizer.h"
#include "support/temporary_directory.h"

namespace octet::test {
namespace {

namespace t = octet::train;

t::TextRules rules() {
  t::TextRules rules;
  rules.vocabulary = 100;
  rules.most_tokens = 6;
  rules.least_learned = 2;
  return rules;
}

t::TrainingTexts read(const std::string& content, BadLines bad) {
  const TemporaryDirectory directory;
  t::TextRules own = rules();
  own.bad = bad;
  t::TrainingTexts texts;
  t::read_training_texts(directory.write("data.jsonl", content), own, nullptr, texts);
  return texts;
}

TEST(Texts, TokensAndWhatIsLearned) {
  const auto texts = read(
      "{\"tokens\": [1, 2, 3, 99]}\n\n  \n{\"tokens\": [1,2,3,4,5], \"prompt_tokens\": 3, \"x\": "
      "0}\n",
      BadLines::kRefuse
  );
  ASSERT_EQ(texts.texts.size(), 2U);
  EXPECT_EQ(texts.texts[0].tokens, (std::vector<TokenId>{1, 2, 3, 99}));
  EXPECT_EQ(texts.texts[0].first_learned, 1);
  EXPECT_EQ(texts.texts[1].first_learned, 3);
  EXPECT_EQ(texts.tokens(), 9);
}

struct BadLine {
  const char* line;
  const char* why;
};

const BadLine kBadLines[] = {
    {"{\"tokens\": [1, 2", "not valid JSON"},
    {"[1, 2, 3]", "expected an object"},
    {"{\"tokens\": 7}", "'tokens'"},
    {"{\"other\": []}", "expected an object"},
    {"{\"text\": \"no tokenizer here\"}", "expected an object"},
    {"{\"prompt\": 3, \"error\": \"too long\"}", "without a reply: too long"},
    {"{\"tokens\": [1, 2, 100]}", "another vocabulary"},
    {"{\"tokens\": [1, -2, 3]}", "another vocabulary"},
    {"{\"tokens\": [1, 2.5, 3]}", "another vocabulary"},
    {"{\"tokens\": [1, 2, 3, 4, 5, 6, 7]}", "at most 6"},
    {"{\"tokens\": []}", "tokens to learn"},
    {"{\"tokens\": [1, 2]}", "1 tokens to learn"},
    {"{\"tokens\": [1, 2, 3], \"prompt_tokens\": 4}", "prompt_tokens"},
    {"{\"tokens\": [1, 2, 3], \"prompt_tokens\": -1}", "prompt_tokens"},
    {"{\"text\": \"\xff\"}", "UTF-8"},
};

TEST(Texts, BadLinesAreRefusedByNumber) {
  for (const BadLine& bad : kBadLines) {
    try {
      read(std::string("{\"tokens\": [1, 2, 3]}\n") + bad.line + "\n", BadLines::kRefuse);
      ADD_FAILURE() << bad.line << " was taken";
    } catch (const Error& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("data.jsonl, line 2: "), std::string::npos) << what;
      EXPECT_NE(what.find(bad.why), std::string::npos) << bad.line << ": " << what;
    }
  }
}

TEST(Texts, BadLinesAreSkippedAndTold) {
  std::string content = "{\"tokens\": [1, 2, 3]}\n";
  for (const BadLine& bad : kBadLines) {
    content += std::string(bad.line) + "\n";
  }
  const auto texts = read(content, BadLines::kSkip);
  EXPECT_EQ(texts.texts.size(), 1U);
  ASSERT_EQ(texts.skipped.size(), std::size(kBadLines));
  for (size_t i = 0; i < texts.skipped.size(); ++i) {
    EXPECT_EQ(texts.skipped[i].line, static_cast<int64_t>(i) + 2);
    EXPECT_NE(texts.skipped[i].why.find(kBadLines[i].why), std::string::npos);
  }
}

TEST(Texts, AFileWithoutAnyIsAnError) {
  EXPECT_THROW(read("", BadLines::kSkip), Error);
  EXPECT_THROW(read("\n\n", BadLines::kRefuse), Error);
  EXPECT_THROW(read("no JSON\n", BadLines::kSkip), Error);
  t::TrainingTexts texts;
  EXPECT_THROW(t::read_training_texts("/nowhere/at/all", rules(), nullptr, texts), Error);
}

TEST(Texts, PackedInPiecesOfOneLength) {
  t::TrainingTexts texts;
  texts.texts = {{{1, 2, 3}, 1}, {{4, 5}, 1}, {{6, 7, 8, 9}, 1}};
  const auto pieces = t::packed_texts(texts, 4);
  ASSERT_EQ(pieces.size(), 2U);
  EXPECT_EQ(pieces[0].tokens, (std::vector<TokenId>{1, 2, 3, 4}));
  EXPECT_EQ(pieces[1].tokens, (std::vector<TokenId>{5, 6, 7, 8}));
}

t::TrainingText with_replies(const std::string& spelled) {
  const auto tokenizer = shipped_tokenizer();
  std::vector<t::TrainingText> texts(1);
  texts[0].tokens = tokenizer->encode(spelled, SpecialTokens::kParse);
  t::learn_replies_only(texts, *tokenizer);
  return texts[0];
}

/// The text with what is learned in brackets.
std::string learned_text(const std::string& spelled) {
  const t::TrainingText text = with_replies(spelled);
  std::string shown;
  bool inside = false;
  for (int64_t i = 0; i < std::ssize(text.tokens); ++i) {
    const bool learns = text.learns(i);
    shown += learns == inside ? "" : learns ? "[" : "]";
    inside = learns;
    shown += shipped_tokenizer()->decode(std::span(text.tokens).subspan(static_cast<size_t>(i), 1));
  }
  return shown + (inside ? "]" : "");
}

TEST(Texts, RepliesAloneAreLearned) {
  EXPECT_EQ(
      learned_text("<|turn>user\nHello.<turn|>\n<|turn>model\nHi!<turn|>\n<|turn>user\nBye."),
      "<|turn>user\nHello.<turn|>\n<|turn>model\n[Hi!<turn|>]\n<|turn>user\nBye."
  );
  // What a tool answers is given to the model; the mark that asks for it is its own.
  EXPECT_EQ(
      learned_text("<|turn>model\n<|tool_response>response:f{}<tool_response|>Done.<turn|>\n"),
      "<|turn>model\n[<|tool_response>]response:f{}<tool_response|>[Done.<turn|>]\n"
  );
  // Texts in which nobody replies are learned whole.
  EXPECT_TRUE(with_replies("No turns at all.").reply.empty());
  EXPECT_TRUE(with_replies("<|turn>user\nHello.<turn|>\n<|turn>model\n").reply.empty());
  // So are those whose replies are all given.
  const auto tokenizer = shipped_tokenizer();
  const std::string given = "<|turn>model\nHi!<turn|>\n";
  std::vector<t::TrainingText> texts(2);
  texts[0].tokens = tokenizer->encode(given + "A tale of no one.", SpecialTokens::kParse);
  texts[0].first_learned = std::ssize(tokenizer->encode(given, SpecialTokens::kParse));
  texts[1].tokens = tokenizer->encode(given, SpecialTokens::kParse);
  t::learn_replies_only(texts, *tokenizer);
  EXPECT_TRUE(texts[0].reply.empty());
  EXPECT_FALSE(texts[1].reply.empty());
}

TEST(Texts, TheFirstReplyBeginsBehindItsTurnsHead) {
  const auto tokenizer = shipped_tokenizer();
  const auto tokens = [&](const char* text) {
    return tokenizer->encode(text, SpecialTokens::kParse);
  };
  const auto before = tokens("<|turn>user\nHello.<turn|>\n<|turn>model\n");
  const auto all = tokens("<|turn>user\nHello.<turn|>\n<|turn>model\nHi!<turn|>\n");
  EXPECT_EQ(t::first_reply(all, *tokenizer), std::ssize(before));
  EXPECT_EQ(t::first_reply(tokens("Hello."), *tokenizer), 0);
}

TEST(Order, EveryEpochReadsEveryTextOnce) {
  const t::SampleOrder order(10, 3);
  std::vector<int64_t> first;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::set<int64_t> seen;
    std::vector<int64_t> list;
    for (int64_t i = 0; i < 10; ++i) {
      list.push_back(order.text(epoch * 10 + i));
      seen.insert(list.back());
    }
    EXPECT_EQ(seen.size(), 10U);
    EXPECT_TRUE(epoch == 0 || list != first);
    first = epoch == 0 ? list : first;
  }
  EXPECT_EQ(t::SampleOrder(10, 3).text(4), first[4]);
}

TEST(Digest, TellsTextsApart) {
  const std::vector<t::TrainingText> a = {{{1, 2, 3}, 1}};
  const std::vector<t::TrainingText> b = {{{1, 2, 3}, 2}};
  const std::vector<t::TrainingText> c = {{{1, 2}, 1}, {{3}, 1}};
  EXPECT_NE(t::texts_digest(a), t::texts_digest(b));
  EXPECT_NE(t::texts_digest(a), t::texts_digest(c));
}

}  // namespace
}  // namespace octet::test
