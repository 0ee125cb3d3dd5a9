// How often the shipped pair's drafts are accepted on dialogues that it was not trained on. The
// figures are those that models/bolt-tiny/README.md states; a fault in the drafter's context, its
// embedding scale, its head or the choice of drafts shows here first, because the text cannot show
// it.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/engine/acceptance_replay.h"
#include "support/trained_pair.h"

namespace octet {
namespace {

constexpr size_t kTurns = 144;
// The last tens of tokens weigh on the greedy figure: a small model that does not end its reply
// repeats itself. Those who trained the pair replayed sequences of 512 tokens, prompts included.
constexpr int64_t kReplyTokens = 320;
constexpr double kTolerance = 0.03;

/// By variant, tokens a step of at most 8 over all turns.
std::vector<double> tokens_per_step(
    test::TrainedPair& pair, float temperature, const std::vector<DraftChoice>& choices
) {
  const auto drafter = pair.drafter();
  std::vector<ReplayVariant> variants;
  for (const DraftChoice choice : choices) {
    ReplayVariant variant;
    variant.drafter = drafter.get();
    variant.choices.rows = {choice};
    variants.push_back(variant);
  }
  const std::vector<std::vector<TokenId>> prompts = test::held_out_prompts(*pair.tokenizer, kTurns);
  EXPECT_EQ(prompts.size(), kTurns);
  ReplayRequest request;
  request.prompts = prompts;
  request.sampling.temperature = temperature;
  request.sampling.seed = 1;
  request.max_tokens = kReplyTokens;
  request.stop_tokens.assign(pair.tokenizer->stop_ids().begin(), pair.tokenizer->stop_ids().end());
  std::vector<double> result;
  for (const ReplayFigures& figures : replay_acceptance(*pair.target, variants, request).variants) {
    result.push_back(figures.pooled.tokens_per_step());
  }
  return result;
}

TEST(ShippedPairAcceptance, GreedyIsAsStated) {
  test::TrainedPair pair = test::load_trained_pair();
  const std::vector<double> found = tokens_per_step(pair, 0.0F, {DraftChoice::kArgmax});
  RecordProperty("tokens_per_step", std::to_string(found[0]));
  EXPECT_NEAR(found[0], 5.38, kTolerance * 5.38);
}

TEST(ShippedPairAcceptance, SampledIsAsStatedAndBetterBySureness) {
  test::TrainedPair pair = test::load_trained_pair();
  const std::vector<double> found = tokens_per_step(
      pair, 1.0F, {DraftChoice::kArgmax, DraftChoice::kBySureness, DraftChoice::kCoupled}
  );
  RecordProperty("argmax", std::to_string(found[0]));
  RecordProperty("by_sureness", std::to_string(found[1]));
  RecordProperty("coupled", std::to_string(found[2]));
  EXPECT_NEAR(found[0], 4.41, kTolerance * 4.41);
  EXPECT_GT(found[1], 1.03 * found[0]);
  EXPECT_GT(found[1], found[2]);
}

}  // namespace
}  // namespace octet
