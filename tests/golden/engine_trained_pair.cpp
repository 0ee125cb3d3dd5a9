// The trained tiny pair through the whole engine: drafted text is plain text, and drafts are
// accepted as often as was measured when the figures below were recorded.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/engine/acceptance_replay.h"
#include "octet/engine/calibrate_embedding_scale.h"
#include "octet/engine/generator.h"
#include "octet/speculation/drafters/no_drafter.h"
#include "support/trained_pair.h"

namespace octet {
namespace {

class TrainedPair : public testing::Test {
 protected:
  std::vector<TokenId> stop_tokens() const {
    return {pair_.tokenizer->stop_ids().begin(), pair_.tokenizer->stop_ids().end()};
  }

  std::vector<TokenId> prompt(const std::string& question) const {
    return pair_.tokenizer->with_bos(pair_.tokenizer->encode(
        "<|turn>user\n" + question + "<turn|>\n<|turn>model\n", SpecialTokens::kParse
    ));
  }

  test::TrainedPair pair_ = test::load_trained_pair();
};

TEST_F(TrainedPair, DraftedTextEqualsPlainText) {
  const auto drafter = pair_.drafter();
  NoDrafter none;
  Generator drafted(*pair_.target, *drafter, *pair_.tokenizer, {512});
  Generator plain(*pair_.target, none, *pair_.tokenizer, {512});
  AcceptanceStatistics statistics;
  for (const char* question :
       {"What is the capital of Sweden?",
        "Tell me a story about a dragon.",
        "What is 12 plus 30?",
        "I need a Python function that sums a list."}) {
    for (const float temperature : {0.0F, 1.0F}) {
      GenerateRequest request;
      request.prompt = prompt(question);
      request.sampling.temperature = temperature;
      request.sampling.seed = 17;
      request.max_tokens = 80;
      request.adapt_drafts = false;  // acceptance of full blocks, whatever they cost here
      const GenerateResult with = drafted.generate(request);
      const GenerateResult without = plain.generate(request);
      EXPECT_EQ(with.tokens, without.tokens) << question;
      EXPECT_EQ(with.text, without.text);
      EXPECT_EQ(with.finish, without.finish);
      statistics.add(with.acceptance);
    }
  }
  EXPECT_GT(statistics.tokens_per_step(), 2.5);
}

// `auto` finds the scale that the drafter was trained with: the file states it, so the answer is
// known.
TEST_F(TrainedPair, CalibrationFindsTheTrainedEmbeddingScale) {
  const std::vector<float> scales = {1.0F, 16.0F};
  const std::vector<std::vector<TokenId>> prompts = {
      prompt("Tell me a story about a dragon."),
      prompt("Describe a lion."),
      prompt("What is the capital of Sweden?"),
      prompt("Count from 21 to 51 in steps of 5."),
      prompt("I need a Python function that sums a list.")};
  const std::vector<TokenId> stops = stop_tokens();
  CalibrationRequest request;
  request.scales = scales;
  request.prompts = prompts;
  request.stop_tokens = stops;
  request.tokens = 200;
  const EmbeddingScaleCalibration found = calibrate_embedding_scale(
      *pair_.target,
      [&](float scale) {
        DrafterOptions options;
        options.embedding_scale = {EmbeddingScale::Kind::kValue, scale};
        return load_drafter(pair_.draft_checkpoint, *pair_.ops, *pair_.target, options);
      },
      request
  );
  EXPECT_EQ(found.scale, 16.0F);
  EXPECT_GT(found.trials[1].mean_acceptance_length, found.trials[0].mean_acceptance_length);
}

}  // namespace
}  // namespace octet
