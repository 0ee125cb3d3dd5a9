// How often the shipped pair's drafts are accepted on dialogues that it was not trained on. The
// figures are those that models/bolt-tiny/README.md states; a fault in the drafter's context, its
// embedding scale, its head or the choice of drafts shows here first, because the text cannot show
// it.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "octet/engine/acceptance_replay.h"
#include "octet/engine/shortlist.h"
#include "support/stored_head.h"
#include "support/trained_pair.h"

namespace octet {
namespace {

constexpr size_t kTurns = 144;
// Room for every reply that ends: a small model that does not end its reply repeats itself, and
// such a one would weigh as much as many others.
constexpr int64_t kReplyTokens = 320;
constexpr double kTolerance = 0.03;

ReplayResult replay(
    test::TrainedPair& pair,
    const std::vector<ReplayVariant>& variants,
    std::span<const std::vector<TokenId>> prompts,
    float temperature
) {
  ReplayRequest request;
  request.prompts = prompts;
  request.sampling.temperature = temperature;
  request.sampling.seed = 1;
  request.max_tokens = kReplyTokens;
  request.stop_tokens.assign(pair.tokenizer->stop_ids().begin(), pair.tokenizer->stop_ids().end());
  return replay_acceptance(*pair.target, variants, request);
}

/// By choice, tokens a step of at most 8 over all turns.
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
  std::vector<double> result;
  for (const ReplayFigures& figures : replay(pair, variants, prompts, temperature).variants) {
    result.push_back(figures.pooled.tokens_per_step());
  }
  return result;
}

TEST(ShippedPairAcceptance, GreedyIsAsStated) {
  test::TrainedPair pair = test::load_trained_pair();
  const std::vector<double> found = tokens_per_step(pair, 0.0F, {DraftChoice::kArgmax});
  RecordProperty("tokens_per_step", std::to_string(found[0]));
  EXPECT_NEAR(found[0], 6.34, kTolerance * 6.34);
}

TEST(ShippedPairAcceptance, SampledIsAsStatedAndBetterBySureness) {
  test::TrainedPair pair = test::load_trained_pair();
  const std::vector<double> found = tokens_per_step(
      pair, 1.0F, {DraftChoice::kArgmax, DraftChoice::kBySureness, DraftChoice::kCoupled}
  );
  RecordProperty("argmax", std::to_string(found[0]));
  RecordProperty("by_sureness", std::to_string(found[1]));
  RecordProperty("coupled", std::to_string(found[2]));
  EXPECT_NEAR(found[0], 6.40, kTolerance * 6.40);
  EXPECT_NEAR(found[1], 6.54, kTolerance * 6.54);
  EXPECT_NEAR(found[2], 6.42, kTolerance * 6.42);
  EXPECT_GT(found[1], 1.01 * found[0]);
}

/// What the target itself wrote in the first half of the turns chooses the tokens; the other half
/// is measured.
TEST(ShippedPairAcceptance, ShortlistAndSmallerHeadLoseLittle) {
  test::TrainedPair pair = test::load_trained_pair();
  const std::vector<std::vector<TokenId>> prompts = test::held_out_prompts(*pair.tokenizer, kTurns);
  const auto half = std::span(prompts).first(kTurns / 2);
  const auto full_drafter = pair.drafter();
  ReplayVariant full;
  full.name = "full";
  full.drafter = full_drafter.get();
  TokenCounts counts(pair.target->shape().vocabulary);
  for (const std::vector<TokenId>& prompt : half) {
    counts.add(prompt);
  }
  for (const std::vector<TokenId>& reply : replay(pair, {full}, half, 0.0F).replies) {
    counts.add(reply);
  }
  struct Head {
    int64_t tokens;  // 0: all
    DType dtype;
    double least;  // of the full head's tokens a step
  };
  const Head heads[] = {
      {2048, DType::kQ8_0, 0.75},
      {1024, DType::kQ8_0, 0.70},
      {0, DType::kQ4K, 0.95},
      {0, DType::kQ4_0, 0.92},
      {2048, DType::kQ4K, 0.75},
  };
  std::vector<std::unique_ptr<DFlashDrafter>> drafters;
  std::vector<ReplayVariant> variants = {full};
  for (const Head& head : heads) {
    const std::vector<TokenId> tokens =
        head.tokens > 0 ? counts.shortlist(head.tokens, pair.tokenizer->stop_ids())
                        : std::vector<TokenId>();
    DrafterOptions options;
    options.draft_head = test::stored_head(*pair.target->head_tensor(), tokens, head.dtype);
    drafters.push_back(pair.drafter(options));
    ReplayVariant variant;
    variant.name = fmt::format("{}_{}", head.tokens, dtype_facts(head.dtype).name);
    variant.drafter = drafters.back().get();
    variants.push_back(variant);
  }
  const ReplayResult result = replay(pair, variants, std::span(prompts).subspan(kTurns / 2), 0.0F);
  const double whole = result.variants.front().pooled.tokens_per_step();
  RecordProperty("full", std::to_string(whole));
  for (size_t i = 0; i < std::size(heads); ++i) {
    const ReplayFigures& figures = result.variants[i + 1];
    RecordProperty(figures.name, std::to_string(figures.pooled.tokens_per_step()));
    EXPECT_GE(figures.pooled.tokens_per_step(), heads[i].least * whole) << figures.name;
  }
}

}  // namespace
}  // namespace octet
