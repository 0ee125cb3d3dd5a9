// A drafter in both of its forms: in the engine and as a differentiable network, so that tests can
// hold the one against the other.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "octet/models/dflash/forward.h"
#include "octet/train/drafter_network.h"
#include "support/model_runs.h"
#include "support/tensor_rows.h"

namespace octet::test {

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
    head_ = train::decoded(*target_->head_tensor());
    parameters_ = train::parameters_of(*files.drafter, [](std::string_view name) {
      return name != "output.weight";
    });
    network_ = std::make_unique<train::DrafterNetwork>(
        model.config(),
        train::decoded(files.target->at("token_embd.weight")),
        model.embedding_scale(),
        train::Precision::kFull
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

  const train::Parameters& parameters() const { return parameters_; }

  /// [anchors, block - 1, vocabulary] with the drafter's own weights or others of their shapes.
  at::Tensor by_network(
      const TargetRun& run, const std::vector<TokenId>& tokens, const std::vector<int64_t>& anchors
  ) {
    return by_network(parameters_, run, tokens, anchors);
  }
  at::Tensor by_network(
      const train::Parameters& parameters,
      const TargetRun& run,
      const std::vector<TokenId>& tokens,
      const std::vector<int64_t>& anchors
  ) {
    train::DraftBlocks blocks;
    blocks.features = tensor_of(run.features);
    blocks.feature_positions = at::arange(blocks.features.size(0), at::kLong);
    blocks.anchor_positions = at::tensor(anchors, at::kLong);
    blocks.anchor_rows = blocks.anchor_positions;
    std::vector<int64_t> tokens_of_anchors;
    for (const int64_t anchor : anchors) {
      tokens_of_anchors.push_back(tokens[static_cast<size_t>(anchor)]);
    }
    blocks.anchor_tokens = at::tensor(tokens_of_anchors, at::kLong);
    const at::Tensor states = network_->states(parameters, blocks);
    return at::mm(states, head_.t())
        .reshape({blocks.blocks(), network_->config().block - 1, head_.size(0)});
  }

 private:
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<TargetModel> target_;
  std::unique_ptr<DraftModel> drafter_;
  at::Tensor head_;
  train::Parameters parameters_;
  std::unique_ptr<train::DrafterNetwork> network_;
};

}  // namespace octet::test
