// Clauses for a voice: where speech is cut and where not, in several scripts, for every cut of the
// stream.

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/base/utf8.h"
#include "octet/chat/speech_clauses.h"

namespace octet {
namespace {

std::vector<SpeechClause> clauses_of(const std::string& text, int64_t least = 4) {
  SpeechClauses clauses(least);
  std::vector<SpeechClause> out;
  clauses.push(text, out);
  clauses.finish(out);
  return out;
}

std::vector<std::string> texts(const std::string& text, int64_t least = 4) {
  std::vector<std::string> out;
  for (const SpeechClause& clause : clauses_of(text, least)) {
    out.push_back(clause.text);
  }
  return out;
}

using Texts = std::vector<std::string>;

TEST(SpeechClauses, EndWhereSentencesAndClausesEnd) {
  EXPECT_EQ(
      texts("Hello there. How are you? Fine!"), (Texts{"Hello there.", "How are you?", "Fine!"})
  );
  EXPECT_EQ(
      texts("When it rains, I stay here; when not: I go."),
      (Texts{"When it rains,", "I stay here;", "when not:", "I go."})
  );
  EXPECT_EQ(texts("One line\nand another"), (Texts{"One line", "and another"}));
  EXPECT_EQ(texts("Really?! Yes... Perhaps."), (Texts{"Really?!", "Yes...", "Perhaps."}));
  EXPECT_EQ(
      texts("She said \"Go away.\" Then (at last!) he went."),
      (Texts{"She said \"Go away.\"", "Then (at last!)", "he went."})
  );
}

TEST(SpeechClauses, EndInOtherScripts) {
  EXPECT_EQ(
      texts("今日はいい天気です。散歩に行きましょう！「はい。」と言った。", 3),
      (Texts{"今日はいい天気です。", "散歩に行きましょう！", "「はい。」", "と言った。"})
  );
  EXPECT_EQ(texts("Привет всем. Как дела?"), (Texts{"Привет всем.", "Как дела?"}));
  EXPECT_EQ(texts("مرحبا بكم، كيف حالك؟ بخير"), (Texts{"مرحبا بكم،", "كيف حالك؟", "بخير"}));
  EXPECT_EQ(texts("नमस्ते दोस्तों। आप कैसे हैं?"), (Texts{"नमस्ते दोस्तों।", "आप कैसे हैं?"}));
}

TEST(SpeechClauses, GoOnThroughNumbersAndAbbreviations) {
  for (const std::string whole :
       {"It is 3.14 metres and 1,000 feet at 10:30 sharp.",
        "Ask Dr. Smith or Prof. Miller of St. Mary.",
        "We met e.g. Bob and z.B. Anna too.",
        "Music of J. S. Bach plays.",
        "Am 3. Mai fahren wir.",
        "About approx. five of them left.",
        "See example.com for more."}) {
    EXPECT_EQ(texts(whole, 1), Texts{whole});
  }
  EXPECT_EQ(
      texts("It began in 2024. Then it ended.", 1), (Texts{"It began in 2024.", "Then it ended."})
  );
}

TEST(SpeechClauses, AreLongEnoughButTheLast) {
  EXPECT_EQ(texts("Yes, of course. No.", 10), (Texts{"Yes, of course.", "No."}));
  EXPECT_EQ(texts("Hi! Oh! Well, good day.", 8), (Texts{"Hi! Oh! Well,", "good day."}));
  std::string endless;
  for (int i = 0; i < 200; ++i) {
    endless += "word ";
  }
  const auto parts = clauses_of(endless);
  ASSERT_GT(parts.size(), 3U);
  for (const SpeechClause& part : parts) {
    EXPECT_LE(part.end - part.start, 245);
  }
}

// Any pieces, any text: the same clauses, in order, with true offsets, and nothing but white space
// between them.
TEST(SpeechClauses, DoNotDependOnThePieces) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const std::vector<std::string> parts = {
      "a",
      "B",
      "7",
      ".",
      ",",
      " ",
      "\n",
      "!",
      "?",
      "\"",
      ")",
      "é",
      "。",
      "、",
      "字",
      "\xF0\x9F\xA6\x8E",
      "Dr",
      "etc",
      " "};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    std::vector<std::string> characters;
    const int count = static_cast<int>(random() % 40);
    for (int i = 0; i < count; ++i) {
      text += parts[random() % parts.size()];
    }
    const int64_t least = 1 + static_cast<int64_t>(random() % 6);
    const std::vector<SpeechClause> whole = clauses_of(text, least);
    SpeechClauses clauses(least);
    std::vector<SpeechClause> pieces;
    for (size_t at = 0; at < text.size();) {
      size_t end = at;
      for (uint64_t n = 1 + random() % 3; n > 0 && end < text.size(); --n) {
        const auto length = static_cast<size_t>(decode_utf8(text, end).length);
        characters.push_back(text.substr(end, length));
        end += length;
      }
      clauses.push(text.substr(at, end - at), pieces);
      at = end;
    }
    clauses.finish(pieces);
    ASSERT_EQ(pieces.size(), whole.size()) << text;
    int64_t last = 0;
    const auto between = [&](int64_t from, int64_t to) {
      std::string joined;
      for (int64_t i = from; i < to; ++i) {
        joined += characters[static_cast<size_t>(i)];
      }
      return joined;
    };
    for (size_t i = 0; i < whole.size(); ++i) {
      EXPECT_EQ(pieces[i].text, whole[i].text);
      EXPECT_EQ(between(whole[i].start, whole[i].end), whole[i].text) << text;
      EXPECT_EQ(between(last, whole[i].start).find_first_not_of(" \n"), std::string::npos) << text;
      last = whole[i].end;
    }
    EXPECT_EQ(between(last, std::ssize(characters)).find_first_not_of(" \n"), std::string::npos)
        << text;
  }
}

}  // namespace
}  // namespace octet
