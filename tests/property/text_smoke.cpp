// The fuzzer's probe on seeded inputs, so that the ordinary tests run it too.
#include <random>

#include <gtest/gtest.h>

#include "support/tokenizer_probe.h"

namespace octet {
namespace {

TEST(TokenizerSmoke, SurvivesMutatedFiles) {
  const std::string good = test::read_text(test::kTextGolden + "tiny_tokenizer.json");
  ASSERT_FALSE(good.empty());
  for (uint64_t seed = 0; seed < 150; ++seed) {
    std::mt19937_64 random(seed);
    std::string json = good;
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = random() % json.size();
      switch (random() % 3) {
        case 0:
          json[at] = static_cast<char>(random());
          break;
        case 1:
          json.erase(at, 1 + random() % 50);
          break;
        default:
          json.insert(at, json, random() % json.size(), 1 + random() % 50);
      }
    }
    SCOPED_TRACE(seed);
    test::probe_tokenizer("\x03" + json);
  }
}

TEST(TokenizerSmoke, SurvivesRandomTextsAndVocabularies) {
  const std::vector<std::string> parts = {
      "a", "b", "ab", "\x1F", "\n", " ", "\xE2\x96\x81", "\xC3\xA9", "\xFF", "<|turn>", "turn>"};
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    std::mt19937_64 random(seed);
    std::string input(1, static_cast<char>(1 + random() % 2));
    for (auto count = random() % 80; count > 0; --count) {
      input.append(parts[random() % parts.size()]);
    }
    SCOPED_TRACE(seed);
    test::probe_tokenizer(input);
  }
}

}  // namespace
}  // namespace octet
