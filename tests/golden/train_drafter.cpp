// The drafter that is trained is the drafter that runs: its states, scored by the head, are the
// engine's draft logits and the published ones of an independent float64 pass.
#include <gtest/gtest.h>

#include "octet/formats/open_checkpoint.h"
#include "octet/train/drafter_network.h"
#include "support/conversions.h"
#include "support/golden_files.h"
#include "support/random_models.h"
#include "support/tensor_rows.h"

namespace octet::test {
namespace {

using at::Tensor;
namespace t = octet::train;

struct PairFiles {
  std::shared_ptr<const Checkpoint> target;
  std::shared_ptr<const Checkpoint> drafter;
};

/// A pair in the engine with exact activations, and its drafter as a network.
class TwoForms {
 public:
  explicit TwoForms(const PairFiles& files)
      : ops_(test_ops(1)), target_(load_target(files.target, *ops_, {})) {
    DrafterOptions options;
    options.kv_type = KvType::kF32;
    drafter_ = load_drafter(files.drafter, *ops_, *target_, options);
    const auto& model = dynamic_cast<const DFlashModel&>(*drafter_);
    head_ = t::decoded(*target_->head_tensor());
    parameters_ = t::parameters_of(*files.drafter, [](std::string_view name) {
      return name != "output.weight";
    });
    network_ = std::make_unique<t::DrafterNetwork>(
        model.config(),
        t::decoded(files.target->at("token_embd.weight")),
        model.embedding_scale(),
        t::Precision::kFull
    );
  }

  TargetModel& target() { return *target_; }

  TargetRun run(const std::vector<TokenId>& tokens) {
    return run_target(*target_, tokens, 256, drafter_->shape().taps, KvType::kF32);
  }

  FloatRows by_engine(const TargetRun& run, const std::vector<TokenId>& tokens, int64_t anchor) {
    const auto cache = drafter_->new_cache(anchor + 1);
    inject(*drafter_, *cache, {run.features.begin(), run.features.begin() + anchor});
    return draft(*drafter_, *cache, tokens[static_cast<size_t>(anchor)]);
  }

  /// [anchors, block - 1, vocabulary]
  Tensor by_network(
      const TargetRun& run, const std::vector<TokenId>& tokens, const std::vector<int64_t>& anchors
  ) {
    t::DraftBlocks blocks;
    blocks.features = tensor_of(run.features);
    blocks.feature_positions = at::arange(blocks.features.size(0), at::kLong);
    blocks.anchor_positions = at::tensor(anchors, at::kLong);
    blocks.anchor_rows = blocks.anchor_positions;
    std::vector<int64_t> tokens_of_anchors;
    for (const int64_t anchor : anchors) {
      tokens_of_anchors.push_back(tokens[static_cast<size_t>(anchor)]);
    }
    blocks.anchor_tokens = at::tensor(tokens_of_anchors, at::kLong);
    const Tensor states = network_->states(parameters_, blocks);
    return at::mm(states, head_.t())
        .reshape({blocks.blocks(), network_->config().block - 1, head_.size(0)});
  }

 private:
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<TargetModel> target_;
  std::unique_ptr<DraftModel> drafter_;
  Tensor head_;
  t::Parameters parameters_;
  std::unique_ptr<t::DrafterNetwork> network_;
};

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
