// The drafter that is trained is the drafter that runs: its states, scored by the head, are the
// engine's draft logits and the published ones of an independent float64 pass.
#include <gtest/gtest.h>

#include "octet/formats/open_checkpoint.h"
#include "support/conversions.h"
#include "support/drafter_forms.h"
#include "support/golden_files.h"
#include "support/random_models.h"
#include "support/tensor_rows.h"

namespace octet::test {
namespace {

using at::Tensor;
namespace t = octet::train;

void expect_equal_drafts(
    TwoForms& forms,
    const std::vector<TokenId>& tokens,
    const std::vector<int64_t>& anchors,
    double tolerance
) {
  const TargetRun run = forms.run(tokens);
  const Tensor found = forms.by_network(run, tokens, anchors);
  for (size_t i = 0; i < anchors.size(); ++i) {
    const Tensor expected = tensor_of(forms.by_engine(run, tokens, anchors[i]));
    EXPECT_LE(largest_difference(found[static_cast<int64_t>(i)], expected), tolerance)
        << "anchor " << anchors[i];
  }
}

PairFiles tiny_pair() {
  const std::string folder = OCTET_SOURCE_DIR "/tests/golden/tiny/";
  return {
      open_checkpoint(folder + "tiny-bf16.gguf"),
      open_checkpoint(folder + "tiny-dflash-bf16.gguf")};
}

TEST(TrainedDrafterIsTheEngines, PublishedLogits) {
  const std::string folder = OCTET_SOURCE_DIR "/tests/golden/tiny/";
  TwoForms forms(tiny_pair());
  for (const char* name : {"s007", "s033"}) {
    const std::string file = folder + "tiny-bf16/exact/" + name + ".draft_logits.f32";
    ASSERT_TRUE(exists(file)) << file;
    const auto tokens = token_list(*read_json(folder + "sequences.json").find_array(name));
    const Tensor expected = tensor_of(read_f32_rows(file, forms.target().shape().vocabulary));
    const TargetRun run = forms.run(tokens);
    const Tensor found = forms.by_network(run, tokens, {std::ssize(tokens) - 1});
    // Row 0 of the file is the anchor's.
    EXPECT_LE(largest_difference(found[0], expected.slice(0, 1)), 2e-4) << name;
  }
}

TEST(TrainedDrafterIsTheEngines, ManyAnchorsOfOneText) {
  TwoForms forms(tiny_pair());
  std::vector<TokenId> tokens;
  RandomNumbers random(11);
  for (int i = 0; i < 120; ++i) {  // longer than both windows
    tokens.push_back(static_cast<TokenId>(random.integer(5, 2047)));
  }
  expect_equal_drafts(forms, tokens, {0, 1, 7, 47, 48, 49, 60, 119}, 1e-3);
}

TEST(TrainedDrafterIsTheEngines, MixedWindowsAndCausality) {
  GemmaShape target;
  DFlashShape drafter;
  drafter.windowed = {true, false, true};
  drafter.causal = {true, false, false};
  drafter.embedding_scale = 3.0;
  TwoForms forms({make_gemma(target, 3), make_dflash(drafter, 4)});
  std::vector<TokenId> tokens;
  RandomNumbers random(12);
  for (int i = 0; i < 50; ++i) {
    tokens.push_back(static_cast<TokenId>(random.integer(5, 63)));
  }
  expect_equal_drafts(forms, tokens, {0, 5, 15, 16, 17, 49}, 1e-3);
}

TEST(TrainedDrafterIsTheEngines, TheTrainedPair) {
  const TemporaryDirectory directory;
  TwoForms forms(
      {decoded_shipped_model("bolt-tiny-q8_0", directory),
       decoded_shipped_model("bolt-tiny-dflash-q8_0", directory)}
  );
  std::vector<TokenId> tokens;
  RandomNumbers random(13);
  for (int i = 0; i < 200; ++i) {
    tokens.push_back(static_cast<TokenId>(random.integer(17, 4095)));
  }
  expect_equal_drafts(forms, tokens, {0, 40, 127, 128, 129, 199}, 5e-3);
}

}  // namespace
}  // namespace octet::test
