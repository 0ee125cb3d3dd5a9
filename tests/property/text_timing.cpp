// How fast the tokenizer loads and encodes, in processor time. The limits are an order of magnitude
// wider than the goals (0.6 s, 5 MB/s), because machines differ, two under AddressSanitizer, and
// still catch what is quadratic.
// OCTET_TEST_TIMING=1 takes texts of 10 MB and prints the figures.
#include <cstdlib>
#include <ctime>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/missing.h"
#include "support/sanitizers.h"
#include "support/tokenizer_fixtures.h"

namespace octet {
namespace {

constexpr double kSlack = test::kKeepsShadowMemory ? 100.0 : 10.0;
constexpr double kMostLoadSeconds = 0.6 * kSlack;
constexpr double kLeastMegabytesPerSecond = 5.0 / kSlack;

bool prints_figures() {
  return std::getenv("OCTET_TEST_TIMING") != nullptr;  // NOLINT(concurrency-mt-unsafe)
}

size_t text_bytes() {
  return prints_figures() ? 10'000'000 : 1'000'000;
}

/// Processor time of this process: also right on a busy machine.
double seconds_of(const auto& body) {
  const std::clock_t start = std::clock();
  body();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

std::string repeated(std::string_view part) {
  std::string text;
  while (text.size() < text_bytes()) {
    text.append(part);
  }
  return text;
}

std::string random_words(std::mt19937_64& random) {
  std::string text;
  while (text.size() < text_bytes()) {
    for (auto length = 1 + random() % 9; length > 0; --length) {
      text.push_back(static_cast<char>('a' + random() % 26));
    }
    text.push_back(' ');
  }
  return text;
}

/// Random code points of [first, first + count) without any place to cut.
std::string random_characters(std::mt19937_64& random, char32_t first, uint64_t count) {
  std::string text;
  while (text.size() < text_bytes()) {
    append_utf8(text, first + static_cast<char32_t>(random() % count));
  }
  return text;
}

TEST(TokenizerTiming, LoadsAndEncodesFast) {
  const std::string json = test::read_text(test::kGemma3Json);
  if (json.empty()) {
    OCTET_NEEDS(test::kGemma3Json);
  }
  Checkpoint checkpoint;
  checkpoint.sidecars["tokenizer.json"] = test::kGemma3Json;
  for (int i = 0; i < 3; ++i) {
    const double seconds = seconds_of([&] { load_tokenizer(checkpoint); });
    EXPECT_LT(seconds, kMostLoadSeconds);
    if (prints_figures()) {
      fmt::print("load {} bytes of tokenizer.json: {:.3f} s\n", json.size(), seconds);
    }
  }
  const auto tokenizer = test::gemma4_tokenizer();
  std::mt19937_64 random(1);
  std::string prose;
  for (const auto row : test::JsonLines(test::kTextGolden + "gemma4_token_vectors.jsonl").rows) {
    prose.append(std::string_view(row["text"])).append("\n");
  }
  const std::pair<std::string_view, std::string> texts[] = {
      {"one letter", repeated("a")},
      {"spaces", repeated(" ")},
      {"newlines", repeated("\n")},
      {"two letters", repeated("ab")},
      {"random words", random_words(random)},
      {"random letters", random_characters(random, U'a', 26)},
      {"random CJK", random_characters(random, U'\u4E00', 3000)},
      {"random emoji", random_characters(random, U'\U0001F600', 64)},
      {"mixed text", repeated(prose)}};
  for (const auto& [name, text] : texts) {
    size_t tokens = 0;
    const double seconds = seconds_of([&, &given = text] {
      tokens = tokenizer->encode(given, SpecialTokens::kPlain).size();
    });
    const double megabytes = static_cast<double>(text.size()) * 1e-6;
    EXPECT_GT(megabytes / seconds, kLeastMegabytesPerSecond) << name;
    if (!prints_figures()) {
      continue;
    }
    fmt::print(
        "{:>14}: {:6.1f} MB/s, {:.1f} MB in {:.2f} s, {} tokens\n",
        name,
        megabytes / seconds,
        megabytes,
        seconds,
        tokens
    );
  }
}

}  // namespace
}  // namespace octet
