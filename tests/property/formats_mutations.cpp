// Damaged files are refused with a message, whatever the damage: the fuzz targets run over seeded
// mutations.

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fuzz/format_targets.h"
#include "support/format_seeds.h"

namespace octet {
namespace {

using test::RandomNumbers;

constexpr uint64_t kInteresting[] = {
    0,
    1,
    0x7F,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0xFFFFFFFF,
    uint64_t{1} << 40U,
    ~uint64_t{0},
    ~uint64_t{0} >> 1U};

size_t random_position(RandomNumbers& random, size_t size) {
  return static_cast<size_t>(random.integer(0, static_cast<int64_t>(size) - 1));
}

/// One to four random edits; most near the front, where the structure is.
std::string mutated(std::string text, RandomNumbers& random) {
  for (int64_t edits = random.integer(1, 4); edits > 0 && text.size() > 8; --edits) {
    const size_t reach =
        random.integer(0, 3) == 0 ? text.size() : std::min<size_t>(text.size(), 2500);
    const size_t at = random_position(random, reach);
    switch (random.integer(0, 5)) {
      case 0:
        text[at] = static_cast<char>(random.bits());
        break;
      case 1:
        text[at] =
            static_cast<char>(static_cast<unsigned char>(text[at]) ^ (1U << (random.bits() % 8)));
        break;
      case 2:
        text.resize(at);
        break;
      case 3:
        text.insert(
            at,
            std::string(
                static_cast<size_t>(random.integer(1, 16)), static_cast<char>(random.bits())
            )
        );
        break;
      case 4:
        text.erase(at, static_cast<size_t>(random.integer(1, 16)));
        break;
      default: {
        const uint64_t value = kInteresting[random_position(random, std::size(kInteresting))];
        const size_t width = random.integer(0, 1) == 0 ? 4 : 8;
        std::memcpy(text.data() + std::min(at, text.size() - width), &value, width);
      }
    }
  }
  return text;
}

struct Outcome {
  int accepted = 0;
  int refused = 0;
};

Outcome run(
    const std::vector<std::string>& seeds,
    int rounds,
    const std::function<std::string(std::span<const std::byte>)>& target,
    const std::string& message_prefix
) {
  Outcome outcome;
  for (const std::string& seed_text : seeds) {
    EXPECT_EQ(target(test::bytes_of(seed_text)), "") << "the seed itself is valid";
    for (int round = 0; round < rounds; ++round) {
      SCOPED_TRACE("round " + std::to_string(round));
      RandomNumbers random(static_cast<uint64_t>(round) + 1);
      // An exact copy on the heap, so that a read past the end is seen by the address sanitizer.
      const std::string text = mutated(seed_text, random);
      const std::vector<char> bytes(text.begin(), text.end());
      const std::string message = target(std::as_bytes(std::span(bytes)));
      EXPECT_THAT(message, ::testing::AnyOf("", ::testing::StartsWith(message_prefix)));
      (message.empty() ? outcome.accepted : outcome.refused) += 1;
    }
  }
  return outcome;
}

TEST(FormatMutations, Gguf) {
  const Outcome outcome = run(test::gguf_seeds(), 3000, fuzz::try_gguf, "input: ");
  EXPECT_GT(outcome.refused, outcome.accepted) << "mutations must reach the structure";
  EXPECT_GT(outcome.accepted, 0) << "mutations must reach what lies behind the structure";
}

TEST(FormatMutations, Safetensors) {
  const Outcome outcome = run(test::safetensors_seeds(), 5000, fuzz::try_safetensors, "");
  EXPECT_GT(outcome.refused, outcome.accepted);
  EXPECT_GT(outcome.accepted, 0);
}

TEST(FormatMutations, HuggingFaceConfig) {
  const Outcome outcome = run(test::hf_config_seeds(), 5000, fuzz::try_hf_config, "");
  EXPECT_GT(outcome.refused, outcome.accepted);
  EXPECT_GT(outcome.accepted, 0);
}

}  // namespace
}  // namespace octet
