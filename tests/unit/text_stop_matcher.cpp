// Stop strings across token borders, against a plain search in the whole text.
#include <optional>
#include <random>

#include <gtest/gtest.h>

#include "octet/text/stop_matcher.h"
#include "support/error_message.h"

namespace octet {
namespace {

std::shared_ptr<const StopStrings> compile(const std::vector<std::string>& strings) {
  return std::make_shared<const StopStrings>(strings);
}

TEST(StopMatcher, MatchesAcrossTokensAndHoldsBackTheStart) {
  StopMatcher matcher(compile({"\nUser:", "END"}));
  EXPECT_FALSE(matcher.advance("Hello\n"));
  EXPECT_EQ(matcher.publishable_bytes(), 5);
  EXPECT_FALSE(matcher.advance("Us"));
  EXPECT_EQ(matcher.publishable_bytes(), 5);
  EXPECT_TRUE(matcher.advance("er: and more"));
  EXPECT_EQ(matcher.match(), 0);
  EXPECT_EQ(matcher.match_start(), 5);
  EXPECT_EQ(matcher.publishable_bytes(), 5);
  EXPECT_EQ(matcher.seen_bytes(), 11);
  EXPECT_TRUE(matcher.advance("END"));
  EXPECT_EQ(matcher.match(), 0);
}

TEST(StopMatcher, ReleasesAFalseStart) {
  StopMatcher matcher(compile({"aab"}));
  matcher.advance("aa");
  EXPECT_EQ(matcher.publishable_bytes(), 0);
  matcher.advance("a");
  EXPECT_EQ(matcher.publishable_bytes(), 1);
  matcher.advance("c");
  EXPECT_EQ(matcher.publishable_bytes(), 4);
  EXPECT_FALSE(matcher.matched());
}

TEST(StopMatcher, FirstEndWinsThenTheLongest) {
  StopMatcher inner(compile({"abcd", "bc"}));
  EXPECT_TRUE(inner.advance("xabcd"));
  EXPECT_EQ(inner.match(), 1);
  EXPECT_EQ(inner.match_start(), 2);
  StopMatcher longest(compile({"c", "abc", "bc"}));
  EXPECT_TRUE(longest.advance("xabc"));
  EXPECT_EQ(longest.match(), 1);
  EXPECT_EQ(longest.match_start(), 1);
}

TEST(StopMatcher, WithoutStringsEverythingIsPublishable) {
  StopMatcher none;
  EXPECT_FALSE(none.advance("text"));
  EXPECT_EQ(none.publishable_bytes(), 4);
  StopMatcher empty(compile({}));
  EXPECT_FALSE(empty.advance("text"));
  EXPECT_EQ(empty.publishable_bytes(), 4);
}

TEST(StopMatcher, ACopyIsIndependent) {
  StopMatcher committed(compile({"stop"}));
  committed.advance("st");
  StopMatcher tried = committed;
  EXPECT_TRUE(tried.advance("op"));
  EXPECT_FALSE(committed.matched());
  EXPECT_FALSE(committed.advance("ay"));
  EXPECT_EQ(committed.publishable_bytes(), 4);
}

TEST(StopMatcher, RefusesBadStrings) {
  EXPECT_EQ(test::error_message([] { compile({"ok", ""}); }), "stop string 1 is empty");
  EXPECT_EQ(
      test::error_message([] { compile(std::vector<std::string>(300, "x")); }),
      "300 stop strings given, at most 256 are allowed"
  );
  EXPECT_EQ(
      test::error_message([] { compile({std::string(70'000, 'x')}); }),
      "the stop strings have more than 65536 bytes together"
  );
}

/// The end that comes first; among matches with that end the longest.
std::optional<std::pair<size_t, size_t>> find_stop(
    const std::string& text, const std::vector<std::string>& strings
) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& string : strings) {
      if (string.size() > longest && std::string_view(text).substr(0, end).ends_with(string)) {
        longest = string.size();
      }
    }
    if (longest > 0) {
      return std::pair(end - longest, end);
    }
  }
  return std::nullopt;
}

/// Length of the longest end of `text` that begins one of the strings.
size_t held_back(const std::string& text, const std::vector<std::string>& strings) {
  for (size_t length = text.size(); length > 0; --length) {
    for (const std::string& string : strings) {
      if (string.starts_with(std::string_view(text).substr(text.size() - length))) {
        return length;
      }
    }
  }
  return 0;
}

TEST(StopMatcher, EqualsAPlainSearchHoweverTheTextIsCut) {
  const auto random_string = [](std::mt19937_64& random, uint64_t longest) {
    std::string text;
    for (auto length = 1 + random() % longest; length > 0; --length) {
      text.push_back(static_cast<char>('a' + random() % 2));
    }
    return text;
  };
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<std::string> strings;
    for (auto count = 1 + random() % 3; count > 0; --count) {
      strings.push_back(random_string(random, 7));
    }
    const std::string text = random_string(random, 40);
    StopMatcher matcher(compile(strings));
    std::string seen;
    int64_t published = 0;
    while (seen.size() < text.size()) {
      const std::string token = text.substr(seen.size(), random() % 5);
      seen.append(token);
      matcher.advance(token);
      const auto stop = find_stop(seen, strings);
      ASSERT_EQ(matcher.matched(), stop.has_value()) << "seed " << seed;
      ASSERT_GE(matcher.publishable_bytes(), published) << "seed " << seed;
      published = matcher.publishable_bytes();
      if (stop) {
        ASSERT_EQ(matcher.match_start(), static_cast<int64_t>(stop->first)) << "seed " << seed;
        ASSERT_EQ(published, static_cast<int64_t>(stop->first)) << "seed " << seed;
        ASSERT_EQ(matcher.seen_bytes(), static_cast<int64_t>(stop->second)) << "seed " << seed;
        break;
      }
      ASSERT_EQ(published, static_cast<int64_t>(seen.size() - held_back(seen, strings)))
          << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace octet
