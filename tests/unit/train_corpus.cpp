// The generated dialogues: the same for a seed, in the grammar that octet reads, true in what can
// be checked, and of all topics.
#include <map>
#include <regex>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "octet/train/corpus/topics.h"

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

TEST(Corpus, SumsAreRight) {
  const std::regex sum("(\\d+) ([-+*]) (\\d+) = (\\d+)");
  const std::regex times("(\\d+) times (\\d+) is (\\d+)");
  std::map<std::string, int> checked;
  for (const std::string& text : dialogues(4000, 0.5)) {
    for (auto it = std::sregex_iterator(text.begin(), text.end(), sum);
         it != std::sregex_iterator();
         ++it) {
      const int64_t a = std::stoll((*it)[1]);
      const int64_t b = std::stoll((*it)[3]);
      const std::string sign = (*it)[2];
      const int64_t expected = sign == "+" ? a + b : sign == "-" ? a - b : a * b;
      EXPECT_EQ(std::stoll((*it)[4]), expected) << text;
      ++checked[sign];
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

}  // namespace
}  // namespace octet::test
