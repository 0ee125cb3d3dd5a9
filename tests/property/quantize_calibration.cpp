// Calibration of NVFP4: what the watching backend sees against naive sums, what a drafter is shown
// of a text, and the whole on random models.

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "octet/models/load_model.h"
#include "octet/quantize/calibrate_nvfp4.h"
#include "octet/quantize/draft_text.h"
#include "octet/quantize/nvfp4_weights.h"
#include "octet/quantize/text_chunks.h"
#include "octet/tensor/nvfp4_activations.h"
#include "support/gptq_oracle.h"
#include "support/random_models.h"
#include "support/scripted_draft_model.h"

namespace octet::test {
namespace {

constexpr TokenId kBos = 2;

std::unique_ptr<Ops> cpu_ops(int threads) {
  return make_cpu_ops({.threads = threads, .isa = ""});
}

Matrix rows_of(const std::vector<float>& x, int64_t cols) {
  Matrix m;
  for (auto row = x.begin(); row != x.end(); row += cols) {
    m.emplace_back(row, row + cols);
  }
  return m;
}

TEST(CalibrationOps, SumsWhatAWeightSawInCompanyAndAlone) {
  constexpr int64_t kCols = 32;
  CalibrationOps ops(cpu_ops(2));
  const OwnedTensor query = random_tensor("q", DType::kF32, {5, kCols}, 1, 0.5F);
  const OwnedTensor key = random_tensor("k", DType::kF32, {7, kCols}, 2, 0.5F);
  const auto q = ops.prepare(Checkpoint(), query.tensor);
  const auto k = ops.prepare(Checkpoint(), key.tensor);
  const std::vector<float> both = random_values(9 * kCols, 3, 1.0F);
  const std::vector<float> alone = random_values(4 * kCols, 4, 2.0F);
  std::vector<float> out_q(9 * 5);
  std::vector<float> out_k(9 * 7);
  ops.watch_largest();
  ops.watch_hessians({{"q", std::nullopt}, {"k", std::nullopt}});
  const Product products[] = {
      {q.get(), {out_q.data(), 9, 5, 5}}, {k.get(), {out_k.data(), 9, 7, 7}}};
  ops.matmul({both.data(), 9, kCols, kCols}, products);
  const Product own{k.get(), {out_k.data(), 4, 7, 7}};
  ops.matmul({alone.data(), 4, kCols, kCols}, {&own, 1});

  const auto expect_hessian = [&](const char* name, const std::vector<float>& rows) {
    const Matrix expected = oracle_hessian(rows_of(rows, kCols));
    const std::vector<double> found = ops.take_hessian(name);
    ASSERT_EQ(found.size(), static_cast<size_t>(kCols * kCols));
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i / kCols][i % kCols], 1e-5) << name << ' ' << i;
    }
  };
  std::vector<float> all = both;
  all.insert(all.end(), alone.begin(), alone.end());
  expect_hessian("k", all);
  expect_hessian("q", both);
  EXPECT_TRUE(ops.take_hessian("q").empty()) << "it was taken";
  const auto largest = ops.take_largest();
  const auto magnitude = [](const std::vector<float>& x) {
    float m = 0.0F;
    for (const float value : x) {
      m = std::max(m, std::fabs(value));
    }
    return bf16_to_f32(f32_to_bf16(m));
  };
  EXPECT_EQ(largest.at("q"), magnitude(both));
  EXPECT_EQ(largest.at("k"), magnitude(all));
}

TEST(CalibrationOps, ReplacedWeightsMultiplyFromThenOn) {
  CalibrationOps ops(cpu_ops(1));
  const OwnedTensor first = random_tensor("w", DType::kF32, {3, 16}, 1, 0.5F);
  const OwnedTensor second = random_tensor("w", DType::kF32, {3, 16}, 2, 0.5F);
  const auto held = ops.prepare(Checkpoint(), first.tensor);
  const auto plain_ops = cpu_ops(1);
  const auto plain = plain_ops->prepare(Checkpoint(), second.tensor);
  ops.replace(second.tensor);
  const std::vector<float> x = random_values(2 * 16, 5, 1.0F);
  std::vector<float> found(6);
  std::vector<float> expected(6);
  const Product product{held.get(), {found.data(), 2, 3, 3}};
  ops.matmul({x.data(), 2, 16, 16}, {&product, 1});
  const Product other{plain.get(), {expected.data(), 2, 3, 3}};
  plain_ops->matmul({x.data(), 2, 16, 16}, {&other, 1});
  EXPECT_EQ(found, expected);
}

TEST(DraftText, InjectsEveryTokenOnceAndDraftsWhereVerificationWould) {
  constexpr int64_t kVocabulary = 40;
  ScriptedTarget target(kVocabulary, pseudo_random_rule(7, 4.0));
  ScriptedDraftModel foresees(target, {.target_seed = 7, .target_width = 4.0});
  // The target's own greedy text: every draft comes true.
  std::vector<TokenId> text = {kBos};
  const auto cache = target.new_cache(200, KvType::kF32);
  ForwardRows out;
  while (std::ssize(text) < 100) {
    SequenceRows rows;
    rows.cache = cache.get();
    rows.tokens = std::span(text).last(1);
    rows.logits_rows = 1;
    target.forward({&rows, 1}, {}, out);
    const float* logits = out.logits.row(0);
    text.push_back(static_cast<TokenId>(std::max_element(logits, logits + kVocabulary) - logits));
  }
  const std::vector<std::vector<TokenId>> chunks = {text};
  const DraftText played(target, foresees.shape().taps, chunks, {});
  EXPECT_EQ(played.tokens(), 100);
  played.play(foresees);
  // The last block starts at an anchor behind all that was injected.
  EXPECT_EQ(foresees.injected_rows, 1 + 8 * ((100 - 1 - 1) / 8));
  EXPECT_EQ(foresees.blind_drafts, 0);
}

struct Calibrated {
  CheckpointPlan plan;
  CalibratedWeights weights;
  std::vector<std::string> parts;
};

Calibrated calibrate_target(
    const std::shared_ptr<const Checkpoint>& model, int threads, bool gptq, bool input_scales
) {
  CalibrationOps ops(cpu_ops(threads));
  ThreadPool pool(threads);
  const auto target = load_target(model, ops, {});
  const std::vector<std::vector<TokenId>> texts = {
      random_tokens(150, target->shape().vocabulary, 5)};
  const auto chunks = cut_chunks(texts, kBos, {40, 0}, target->shape());
  Calibrated result;
  result.plan = plan_hf_nvfp4(*model, {});
  CalibrationRequest request{*model, ops, pool, gptq, input_scales, {}, {}};
  request.run = [&](int64_t last_layer) {
    const int64_t layer = std::min(last_layer, target->shape().layers - 1);
    for (const std::vector<TokenId>& chunk : chunks) {
      run_chunk(*target, chunk, {static_cast<int>(layer), last_layer == kAllLayers});
    }
  };
  request.on_part = [&](std::string_view part, int64_t, int64_t) {
    result.parts.emplace_back(part);
  };
  result.weights = calibrate_nvfp4(result.plan, request);
  return result;
}

GemmaShape whole_groups(uint64_t seed) {
  GemmaShape shape = random_gemma_shape(seed);
  shape.hidden = 32;
  shape.ple_width = 16;
  for (int64_t& width : shape.feed_forward) {
    width = 48;
  }
  shape.own_head = seed % 2 == 0;
  return shape;
}

TEST(CalibrateNvfp4, RoundsEveryPlannedWeightTheSameOnAnyNumberOfThreads) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const GemmaShape shape = whole_groups(seed);
    const std::shared_ptr<const Checkpoint> model = make_gemma(shape, seed);
    const bool input_scales = seed % 2 == 1;
    const Calibrated one = calibrate_target(model, 1, true, input_scales);
    const Calibrated three = calibrate_target(model, 3, true, input_scales);
    ASSERT_EQ(one.plan.size(), three.plan.size());
    EXPECT_TRUE(one.weights.indefinite.empty());
    for (size_t i = 0; i < one.plan.size(); ++i) {
      const LogicalTensor& a = *one.plan[i].source;
      const LogicalTensor& b = *three.plan[i].source;
      ASSERT_EQ(one.plan[i].dtype == DType::kNVFP4ModelOpt, a.dtype == DType::kNVFP4ModelOpt);
      EXPECT_TRUE(std::ranges::equal(a.data, b.data)) << a.name;
      EXPECT_TRUE(std::ranges::equal(a.block_scales, b.block_scales)) << a.name;
      EXPECT_EQ(a.input_scale, b.input_scale) << a.name;
      if (a.dtype == DType::kNVFP4ModelOpt) {
        EXPECT_EQ(a.input_scale.has_value(), input_scales) << a.name;
        for (const std::string& name : fused_with(a.name)) {
          const auto twin =
              std::find_if(one.plan.begin(), one.plan.end(), [&](const auto& planned) {
                return planned.source->name == name;
              });
          if (twin != one.plan.end() && twin->dtype == DType::kNVFP4ModelOpt) {
            EXPECT_EQ(twin->source->scale, a.scale) << name;
            EXPECT_EQ(twin->source->input_scale, a.input_scale) << name;
          }
        }
      }
    }
  }
}

TEST(CalibrateNvfp4, LaterLayersSeeWhatEarlierOnesBecame) {
  GemmaShape shape = whole_groups(2);
  const std::shared_ptr<const Checkpoint> model = make_gemma(shape, 2);
  const Calibrated result = calibrate_target(model, 2, true, false);
  std::vector<std::string> expected;
  for (size_t layer = 0; layer < shape.sliding.size(); ++layer) {
    expected.push_back(fmt::format("layer {}", layer));
  }
  expected.emplace_back("head");
  EXPECT_EQ(result.parts, expected);
}

TEST(CalibrateNvfp4, InputScalesAloneLeaveTheWeightsAsTheyAre) {
  const std::shared_ptr<const Checkpoint> model = make_gemma(whole_groups(3), 3);
  const Calibrated result = calibrate_target(model, 1, false, true);
  EXPECT_EQ(result.parts, std::vector<std::string>{"input scales"});
  for (const PlannedTensor& planned : result.plan) {
    EXPECT_EQ(planned.source->dtype, model->at(planned.source->name).dtype);
    EXPECT_EQ(planned.source->data.data(), model->at(planned.source->name).data.data());
    EXPECT_EQ(planned.source->input_scale.has_value(), planned.dtype == DType::kNVFP4ModelOpt)
        << planned.source->name;
  }
}

}  // namespace
}  // namespace octet::test
