// The generated dialogues: the same for a seed, in the grammar that octet reads, true in what can
// be checked, and of all topics.
#include <map>
#include <regex>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "octet/train/corpus/topics.h"
#include "octet/train/corpus/withheld.h"
#include "support/error_message.h"
#include "support/held_out_dialogues.h"
#include "support/temporary_directory.h"

namespace octet::test {
namespace {

namespace t = octet::train;

std::vector<std::string> dialogues(int64_t count, double thinking) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < count; ++i) {
    texts.push_back(t::write_dialogue(1, i, thinking));
  }
  return texts;
}

size_t occurrences(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(Corpus, DependsOnSeedAndNumberAlone) {
  EXPECT_EQ(t::write_dialogue(1, 7, 0.35), t::write_dialogue(1, 7, 0.35));
  EXPECT_NE(t::write_dialogue(1, 7, 0.35), t::write_dialogue(2, 7, 0.35));
  const auto texts = dialogues(2000, 0.35);
  EXPECT_GT(std::set(texts.begin(), texts.end()).size(), 1800U);
}

TEST(Corpus, EveryControlTokenHasItsPlace) {
  for (const std::string& text : dialogues(3000, 0.35)) {
    EXPECT_TRUE(text.starts_with("<|turn>")) << text;
    EXPECT_TRUE(text.ends_with("<turn|>\n")) << text;
    EXPECT_EQ(occurrences(text, "<|turn>"), occurrences(text, "<turn|>")) << text;
    EXPECT_EQ(occurrences(text, "<|tool_call>"), occurrences(text, "<tool_call|>")) << text;
    EXPECT_EQ(occurrences(text, "<tool_call|><|tool_response>"), occurrences(text, "<|tool_call>"))
        << text;
    EXPECT_EQ(occurrences(text, "<|tool_response>"), occurrences(text, "<tool_response|>")) << text;
    EXPECT_EQ(occurrences(text, "<|\"|>") % 2, 0U) << text;
    // Text before calls: no turn, thought or response is followed by a call at once.
    EXPECT_EQ(occurrences(text, "model\n<|tool_call>"), 0U) << text;
    EXPECT_EQ(occurrences(text, "<channel|><|tool_call>"), 0U) << text;
    const size_t replies = occurrences(text, "<|turn>model\n");
    EXPECT_GT(replies, 0U) << text;
    const bool thinks = occurrences(text, "<|think|>") > 0;
    EXPECT_EQ(occurrences(text, "<|channel>thought\n"), thinks ? replies : 0U) << text;
    // No place of a phrase was left open.
    const size_t empty =
        occurrences(text, "call:describe_view{}") + occurrences(text, "properties:{}");
    EXPECT_EQ(occurrences(text, "{}"), empty) << text;
  }
}

TEST(Corpus, ThinkingHasItsShare) {
  size_t thinking = 0;
  for (const std::string& text : dialogues(4000, 0.35)) {
    thinking += occurrences(text, "<|think|>");
  }
  EXPECT_NEAR(static_cast<double>(thinking) / 4000.0, 0.35, 0.03);
  EXPECT_EQ(occurrences(t::write_dialogue(1, 3, 0.0), "<|think|>"), 0U);
  EXPECT_EQ(occurrences(t::write_dialogue(1, 3, 1.0), "<|think|>"), 1U);
}

int64_t computed(int64_t a, char sign, int64_t b) {
  return sign == '+' ? a + b : sign == '-' ? a - b : a * b;
}

TEST(Corpus, SumsAreRight) {
  // "18 + 43 = 58 + 3 = 61": each side of an equals sign is worth the same.
  const std::regex chain("\\d+ [-+*] \\d+( = \\d+ [-+] \\d+)? = \\d+");
  const std::regex side("(\\d+) ([-+*]) (\\d+)");
  const std::regex times("(\\d+) times (\\d+) is (\\d+)");
  std::map<std::string, int> checked;
  for (const std::string& text : dialogues(4000, 0.5)) {
    for (auto it = std::sregex_iterator(text.begin(), text.end(), chain);
         it != std::sregex_iterator();
         ++it) {
      const std::string sum = it->str();
      const int64_t result = std::stoll(sum.substr(sum.rfind(' ')));
      for (auto part = std::sregex_iterator(sum.begin(), sum.end(), side);
           part != std::sregex_iterator();
           ++part) {
        const std::string sign = (*part)[2];
        EXPECT_EQ(computed(std::stoll((*part)[1]), sign[0], std::stoll((*part)[3])), result)
            << text;
        ++checked[sign];
      }
    }
    for (auto it = std::sregex_iterator(text.begin(), text.end(), times);
         it != std::sregex_iterator();
         ++it) {
      EXPECT_EQ(std::stoll((*it)[3]), std::stoll((*it)[1]) * std::stoll((*it)[2])) << text;
      ++checked["times"];
    }
  }
  for (const char* kind : {"+", "-", "*", "times"}) {
    EXPECT_GT(checked[kind], 100) << kind;
  }
}

TEST(Corpus, EveryTopicOccurs) {
  std::map<std::string, int> seen;
  const std::vector<std::string> marks = {
      "check_inventory",
      "buy_from_player",
      "get_order",
      "set_light",
      "play_animation",
      "capital of",
      "```cpp",
      "```python",
      "Once upon a time",
      "Count from",
      "{\"",
      "reverse order"};
  for (const std::string& text : dialogues(2000, 0.35)) {
    for (const std::string& mark : marks) {
      seen[mark] += text.find(mark) != std::string::npos ? 1 : 0;
    }
  }
  for (const std::string& mark : marks) {
    EXPECT_GT(seen[mark], 10) << mark;
  }
}

std::string sum_dialogue(const std::string& question, const std::string& answer) {
  return fmt::format("<|turn>user\n{}<turn|>\n<|turn>model\n{}<turn|>\n", question, answer);
}

TEST(Withheld, HoldsDialoguesAndTheirSumsInAnyWords) {
  t::Withheld withheld;
  const std::string asked = sum_dialogue("What is 7 times 12?", "The answer is 84.");
  withheld.add(asked);
  withheld.add(sum_dialogue("Rosa has 15 apples and gives 2 of them to Sam.", "15 - 2 = 13."));
  withheld.add(sum_dialogue("Count from 2 to 8 in steps of 2.", "2, 4, 6, 8."));
  EXPECT_EQ(withheld.dialogues(), 3);
  EXPECT_EQ(withheld.sums(), 2);
  EXPECT_TRUE(withheld.holds(asked));
  EXPECT_TRUE(withheld.holds(sum_dialogue("Multiply 12 by 7.", "12 * 7 = 84. It is 84.")));
  EXPECT_TRUE(withheld.holds(
      sum_dialogue("Hello.", "Hello.") + sum_dialogue("Subtract: 15 - 2.", "The answer is 13.")
  ));
  EXPECT_FALSE(withheld.holds(sum_dialogue("What is 7 plus 12?", "The answer is 19.")));
  EXPECT_FALSE(withheld.holds(sum_dialogue("What is 15 plus 2?", "The answer is 17.")));
  EXPECT_FALSE(withheld.holds(sum_dialogue("What is 84?", "A number.")));
  // One of several sums is enough, and products up to ten times ten are common knowledge.
  EXPECT_TRUE(withheld.holds(sum_dialogue("Work out: 3 + 4, 15 - 2.", "3 + 4 = 7, 15 - 2 = 13.")));
  EXPECT_FALSE(withheld.holds(sum_dialogue("Work out: 3 + 4, 15 + 2.", "3 + 4 = 7, 15 + 2 = 17.")));
  withheld.add(sum_dialogue("What is 7 times 6?", "The answer is 42."));
  EXPECT_FALSE(withheld.holds(sum_dialogue("Multiply 6 by 7.", "6 * 7 = 42.")));
}

TEST(Withheld, KnowsTheSumsOfTheHeldOutDialogues) {
  t::Withheld withheld;
  t::withhold_file(OCTET_SOURCE_DIR "/tests/golden/held_out_dialogues.json", withheld);
  EXPECT_EQ(withheld.dialogues(), 300);
  EXPECT_GT(withheld.sums(), 40);
  for (const std::string& dialogue : held_out_dialogues()) {
    EXPECT_TRUE(withheld.holds(dialogue));
  }
  size_t held = 0;
  for (const std::string& dialogue : dialogues(2000, 0.35)) {
    held += withheld.holds(dialogue) ? 1 : 0;
  }
  EXPECT_GT(held, 10U) << "without --withhold a corpus has them";
  EXPECT_LT(held, 400U);
}

TEST(Withheld, FilesThatAreNoneAreRefusedByLine) {
  const TemporaryDirectory directory;
  t::Withheld withheld;
  const auto message = [&](const std::string& content) {
    const std::string file = directory.write("withheld", content);
    return error_message([&] { t::withhold_file(file, withheld); });
  };
  EXPECT_EQ(message("{\"text\": \"a\"}\n\n{\"text\": \"b\"}\n"), "");
  EXPECT_NE(message("{\"text\": \"a\"}\n{\"words\": 3}\n").find("line 2"), std::string::npos);
  EXPECT_NE(message("[\"a\", 3]").find("expected a list of texts"), std::string::npos);
  EXPECT_NE(message("[\"a\"").find("line 1"), std::string::npos);
}

}  // namespace
}  // namespace octet::test
