// UTF-8 decoding at its edges, and the decoder of streams: never half a character, never more than
// 3 bytes held.
#include <random>

#include <gtest/gtest.h>

#include "octet/base/utf8.h"
#include "octet/text/stream_decoder.h"

namespace octet {
namespace {

const std::string kBad(kReplacementUtf8);

TEST(Utf8, EncodesAndDecodesEveryCodePoint) {
  for (char32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    if (code_point >= 0xD800 && code_point <= 0xDFFF) {
      continue;
    }
    std::string text;
    append_utf8(text, code_point);
    const Utf8Step step = decode_utf8(text, 0);
    ASSERT_EQ(step.status, Utf8Status::kValid) << static_cast<uint32_t>(code_point);
    ASSERT_EQ(step.code_point, code_point);
    ASSERT_EQ(step.length, static_cast<int>(text.size()));
  }
}

// The examples of the Unicode standard, section 3.9, and the edges of each range of lead bytes.
TEST(Utf8, ReplacesMaximalSubparts) {
  const std::pair<std::string, std::string> cases[] = {
      {"\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64",
       "a" + kBad + kBad + kBad + "b" + kBad + "c" + kBad + kBad + "d"},
      {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41",
       kBad + kBad + kBad + kBad + kBad + kBad + kBad + kBad + "A"},
      {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41",
       kBad + kBad + kBad + kBad + kBad + kBad + kBad + kBad + "A"},
      {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42",
       kBad + kBad + kBad + kBad + kBad + "A" + kBad + kBad + "B"},
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", kBad + kBad + kBad + kBad + "A"},
      {"\xF5\x80", kBad + kBad},
      {"\xE0\x9F", kBad + kBad},
      {"\xE2\x82", kBad},
      {std::string("\0x", 2), std::string("\0x", 2)}};
  for (const auto& [text, repaired] : cases) {
    EXPECT_EQ(replace_invalid_utf8(text), repaired);
    EXPECT_EQ(is_valid_utf8(text), text == repaired);
  }
}

TEST(StreamDecoder, JoinsACharacterFromSingleBytes) {
  StreamDecoder decoder;
  EXPECT_EQ(decoder.push("\xF0"), "");
  EXPECT_EQ(decoder.push("\x9F"), "");
  EXPECT_EQ(decoder.push("\xA6"), "");
  EXPECT_EQ(decoder.held_bytes(), 3);
  EXPECT_EQ(decoder.push("\x9C!"), "\xF0\x9F\xA6\x9C!");
  EXPECT_EQ(decoder.flush(), "");
}

TEST(StreamDecoder, GarbageDoesNotBlock) {
  StreamDecoder decoder;
  EXPECT_EQ(decoder.push("\xFF"), kBad);
  EXPECT_EQ(decoder.push("\xFE"), kBad);
  EXPECT_EQ(decoder.push("\xF0\x9F"), "");
  EXPECT_EQ(decoder.push("ok"), kBad + "ok");
  EXPECT_EQ(decoder.push("\xE2\x82"), "");
  EXPECT_EQ(decoder.flush(), kBad);
  EXPECT_EQ(decoder.push("new"), "new");
}

TEST(StreamDecoder, EqualsTheWholeTextHoweverItIsCut) {
  const std::vector<std::string> parts = {
      "a",
      "\xC3\xA9",
      "\xE2\x82\xAC",
      "\xF0\x9F\xA6\x9C",
      "\xF0",
      "\x9F",
      "\xFF",
      "\xE2\x82",
      "\xED\xA0",
      "\x80"};
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    std::mt19937_64 random(seed);
    std::string text;
    for (auto count = random() % 30; count > 0; --count) {
      text.append(parts[random() % parts.size()]);
    }
    StreamDecoder decoder;
    std::string joined;
    for (size_t at = 0; at < text.size();) {
      const size_t length = random() % 4;
      const std::string out = decoder.push(std::string_view(text).substr(at, length));
      ASSERT_TRUE(is_valid_utf8(out)) << "seed " << seed;
      ASSERT_LE(decoder.held_bytes(), 3) << "seed " << seed;
      joined.append(out);
      at += length;
    }
    joined.append(decoder.flush());
    ASSERT_EQ(joined, replace_invalid_utf8(text)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace octet
