// Whether the shipped target works out sums that its corpus did not have: additions and
// subtractions that no dialogue of it asks for, and products that it knows from other dialogues.
// What it cannot do shows that it learnt phrases alone.

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "octet/engine/acceptance_replay.h"
#include "support/held_out_dialogues.h"
#include "support/trained_pair.h"

namespace octet::test {
namespace {

constexpr size_t kSums = 100;
// As models/bolt-tiny/README.md states them.
constexpr int kLeastRight = 80;

/// The last number of a text; "" where there is none.
std::string last_number(std::string_view text) {
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  size_t end = text.size();
  while (end > 0 && !is_digit(text[end - 1])) {
    --end;
  }
  size_t begin = end;
  while (begin > 0 && is_digit(text[begin - 1])) {
    --begin;
  }
  return std::string(text.substr(begin, end - begin));
}

TEST(ShippedPairSums, HeldOutOnesAreRight) {
  constexpr std::string_view kReply = "<|turn>model\n";
  TrainedPair pair = load_trained_pair();
  const auto drafter = pair.drafter();
  std::vector<std::vector<TokenId>> prompts;
  std::vector<std::string> expected;
  for (const std::string& dialogue : held_out_sums()) {
    const size_t reply = dialogue.rfind(kReply) + kReply.size();
    prompts.push_back(pair.tokenizer->with_bos(
        pair.tokenizer->encode(dialogue.substr(0, reply), SpecialTokens::kParse)
    ));
    expected.push_back(last_number(dialogue.substr(reply)));
  }
  ASSERT_EQ(prompts.size(), kSums);
  ReplayVariant variant;
  variant.drafter = drafter.get();
  ReplayRequest request;
  request.prompts = prompts;
  request.max_tokens = 96;
  request.stop_tokens.assign(pair.tokenizer->stop_ids().begin(), pair.tokenizer->stop_ids().end());
  const ReplayResult result = replay_acceptance(*pair.target, {{variant}}, request);
  int right = 0;
  std::string wrong;
  for (size_t i = 0; i < kSums; ++i) {
    const std::string reply = pair.tokenizer->decode(result.replies[i]);
    if (last_number(reply) == expected[i]) {
      ++right;
    } else {
      wrong += fmt::format("expected {}, said {}\n", expected[i], reply);
    }
  }
  RecordProperty("right", right);
  EXPECT_GE(right, kLeastRight) << wrong;
}

}  // namespace
}  // namespace octet::test
