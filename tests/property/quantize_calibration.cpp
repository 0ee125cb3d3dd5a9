// Calibration of NVFP4: what the watching backend sees against naive sums, what a drafter is shown
// of a text, and the whole on random models.

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/models/load_model.h"
#include "octet/models/run_text.h"
#include "octet/quantize/calibrate_nvfp4.h"
#include "octet/quantize/draft_text.h"
#include "octet/quantize/gptq.h"
#include "octet/quantize/nvfp4_weights.h"
#include "octet/quantize/text_chunks.h"
#include "octet/tensor/encode.h"
#include "octet/tensor/nvfp4_activations.h"
#include "support/error_message.h"
#include "support/gptq_oracle.h"
#include "support/nvfp4_activation_oracle.h"
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

TEST(CalibrationOps, CountsInputsAsW4A4RoundsThem) {
  constexpr int64_t kCols = 48;
  constexpr float kInputScale = 0.003F;
  CalibrationOps ops(cpu_ops(1));
  const OwnedTensor tensor = random_tensor("w", DType::kF32, {5, kCols}, 1, 0.5F);
  const auto weight = ops.prepare(Checkpoint(), tensor.tensor);
  const std::vector<float> x = random_values(30 * kCols, 3, 2.0F);
  std::vector<float> out(30 * 5);
  ops.watch_hessians({{"w", kInputScale}});
  const Product product{weight.get(), {out.data(), 30, 5, 5}};
  ops.matmul({x.data(), 30, kCols, kCols}, {&product, 1});
  Matrix rounded;
  for (int64_t r = 0; r < 30; ++r) {
    rounded.push_back(oracle_w4a4_row(x.data() + r * kCols, kCols, kInputScale));
  }
  const Matrix expected = oracle_hessian(rounded);
  const Matrix unrounded = oracle_hessian(rows_of(x, kCols));
  const std::vector<double> found = ops.take_hessian("w");
  double farthest = 0.0;
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i / kCols][i % kCols], 1e-5) << i;
    farthest = std::max(farthest, std::fabs(found[i] - unrounded[i / kCols][i % kCols]));
  }
  EXPECT_GT(farthest, 0.01) << "rounding must be seen";
}

TEST(CalibrationOps, ReplacedWeightsMultiplyFromThenOn) {
  CalibrationOps ops(cpu_ops(1));
  const OwnedTensor first = random_tensor("w", DType::kF32, {3, 16}, 1, 0.5F);
  const OwnedTensor second = random_tensor("w", DType::kF32, {3, 16}, 2, 0.5F);
  const auto held = ops.prepare(Checkpoint(), first.tensor);
  const auto plain_ops = cpu_ops(1);
  const auto plain = plain_ops->prepare(Checkpoint(), second.tensor);
  ops.replace(Checkpoint(), second.tensor);
  const std::vector<float> x = random_values(2 * 16, 5, 1.0F);
  std::vector<float> found(6);
  std::vector<float> expected(6);
  const Product product{held.get(), {found.data(), 2, 3, 3}};
  ops.matmul({x.data(), 2, 16, 16}, {&product, 1});
  const Product other{plain.get(), {expected.data(), 2, 3, 3}};
  plain_ops->matmul({x.data(), 2, 16, 16}, {&other, 1});
  EXPECT_EQ(found, expected);

  // So do rows that are read out of them.
  std::vector<float> rows(2 * 16);
  const std::vector<TokenId> ids = {2, 0};
  ops.gather_rows(*held, ids, 1.0F, {rows.data(), 2, 16, 16});
  std::vector<float> rows_of_file(2 * 16);
  plain_ops->gather_rows(second.tensor, ids, 1.0F, {rows_of_file.data(), 2, 16, 16});
  EXPECT_EQ(rows, rows_of_file);

  // And what models see of it is what the new one says.
  const OwnedTensor other_type = random_tensor("w", DType::kQ8_0, {3, 32}, 2, 0.5F);
  const OwnedTensor wide = random_tensor("w", DType::kF32, {3, 32}, 2, 0.5F);
  CalibrationOps again(cpu_ops(1));
  const auto seen = again.prepare(Checkpoint(), wide.tensor);
  again.replace(Checkpoint(), other_type.tensor);
  const auto direct = plain_ops->prepare(Checkpoint(), other_type.tensor);
  EXPECT_NE(seen->dtype, DType::kF32);
  EXPECT_EQ(seen->dtype, direct->dtype);
  EXPECT_EQ(seen->resident_bytes, direct->resident_bytes);
  EXPECT_EQ(seen->packed, direct->packed);
  EXPECT_EQ(seen->float_activations, direct->float_activations);
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

/// Remembers where it was asked to draft: at which position, behind which token.
class RecordingDraftModel final : public ScriptedDraftModel {
 public:
  using ScriptedDraftModel::ScriptedDraftModel;
  std::vector<std::pair<int64_t, TokenId>> asked;

  void draft(std::span<const DraftRequest> requests, Rows logits) override {
    for (const DraftRequest& request : requests) {
      asked.emplace_back(request.cache->length(), request.anchor);
    }
    ScriptedDraftModel::draft(requests, logits);
  }
};

TEST(DraftText, DraftsNextBehindWhatTheTextConfirms) {
  constexpr int64_t kVocabulary = 12;
  constexpr int64_t kBlock = 8;
  std::set<int64_t> steps;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    ScriptedTarget target(kVocabulary, pseudo_random_rule(seed, 4.0));
    // Guesses that are right for some tokens: the more noise the fewer.
    const ForesightSettings settings = {
        .target_seed = seed, .target_width = 4.0, .noise_width = 0.5 * static_cast<double>(seed)};
    std::vector<TokenId> text = {kBos};
    std::vector<float> logits(kVocabulary);
    while (std::ssize(text) < 90) {
      pseudo_random_logits(text_name(text), seed, 4.0, logits);
      text.push_back(
          static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin())
      );
    }
    const std::vector<std::vector<TokenId>> chunks = {text, {kBos, 5, 6}};
    // Every anchor anew: a drafter that knows all before it, asked once.
    ScriptedDraftModel fresh(target, settings);
    std::vector<std::pair<int64_t, TokenId>> expected;
    for (const std::vector<TokenId>& chunk : chunks) {
      const auto target_cache = target.new_cache(200, KvType::kF32);
      std::vector<float> features;
      for (size_t i = 0; i < chunk.size(); ++i) {
        SequenceRows rows;
        rows.cache = target_cache.get();
        rows.tokens = std::span(chunk).subspan(i, 1);
        rows.feature_rows = 1;
        ForwardRows out;
        target.forward({&rows, 1}, fresh.shape().taps, out);
        features.insert(features.end(), out.features_buffer.begin(), out.features_buffer.end());
      }
      const auto width = static_cast<int64_t>(features.size() / chunk.size());
      for (size_t anchor = 1; anchor < chunk.size();) {
        expected.emplace_back(anchor, chunk[anchor]);
        const auto cache = fresh.new_cache(0);
        fresh.inject(*cache, {features.data(), static_cast<int64_t>(anchor), width, width});
        std::vector<float> drafts((kBlock - 1) * kVocabulary);
        const DraftRequest request{cache.get(), chunk[anchor]};
        fresh.draft({&request, 1}, {drafts.data(), kBlock - 1, kVocabulary, kVocabulary});
        size_t step = 1;
        for (auto row = drafts.begin(); row != drafts.end(); row += kVocabulary, ++step) {
          const auto guess = std::max_element(row, row + kVocabulary) - row;
          if (anchor + step == chunk.size() || chunk[anchor + step] != guess) {
            break;
          }
        }
        steps.insert(static_cast<int64_t>(step));
        anchor += step;
      }
    }
    RecordingDraftModel drafter(target, settings);
    const DraftText played(target, drafter.shape().taps, chunks, {});
    played.play(drafter);
    EXPECT_EQ(drafter.asked, expected);
    EXPECT_EQ(drafter.blind_drafts, 0);
  }
  EXPECT_GE(steps.size(), 5U) << "blocks must be confirmed to many lengths";
}

void run_chunks(
    TargetModel& target, const std::vector<std::vector<TokenId>>& chunks, int64_t last_layer
) {
  const auto layer = static_cast<int>(std::min(last_layer, target.shape().layers - 1));
  for (const std::vector<TokenId>& chunk : chunks) {
    run_text(target, chunk, {{&layer, 1}, last_layer == kAllLayers}, [](const ForwardRows&) {});
  }
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
  request.run = [&](int64_t last_layer) { run_chunks(*target, chunks, last_layer); };
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

/// Codes by name of what became NVFP4.
std::map<std::string, std::vector<std::byte>> codes_of(const Calibrated& calibrated) {
  std::map<std::string, std::vector<std::byte>> codes;
  for (const PlannedTensor& planned : calibrated.plan) {
    if (planned.dtype == DType::kNVFP4ModelOpt) {
      const std::span<const std::byte> data = planned.source->data;
      codes[planned.source->name].assign(data.begin(), data.end());
    }
  }
  return codes;
}

/// `model` with what `calibrated` made of the weights whose names begin so.
std::shared_ptr<Checkpoint> with_rounded(
    const Checkpoint& model, const Calibrated& calibrated, std::string_view prefix
) {
  auto changed = std::make_shared<Checkpoint>();
  changed->metadata = model.metadata;
  std::map<std::string, const LogicalTensor*> rounded;  // a plan may leave tensors out
  for (const PlannedTensor& planned : calibrated.plan) {
    rounded[planned.source->name] = planned.source;
  }
  for (const LogicalTensor& tensor : model.tensors()) {
    const bool wanted = tensor.name.starts_with(prefix) && rounded.contains(tensor.name);
    changed->add(wanted ? *rounded.at(tensor.name) : tensor);
  }
  return changed;
}

TEST(CalibrateNvfp4, LaterLayersSeeWhatEarlierOnesBecame) {
  const GemmaShape shape = whole_groups(2);
  const std::shared_ptr<const Checkpoint> model = make_gemma(shape, 2);
  const Calibrated result = calibrate_target(model, 1, true, false);
  std::vector<std::string> expected_parts;
  for (size_t layer = 0; layer < shape.sliding.size(); ++layer) {
    expected_parts.push_back(fmt::format("layer {}", layer));
  }
  expected_parts.emplace_back("head");
  EXPECT_EQ(result.parts, expected_parts);
  ASSERT_GE(shape.sliding.size(), 2U);

  // Rounding the later layers of a model whose first layer is rounded already gives the same codes;
  // of one whose first layer is not, others.
  const auto codes = codes_of(result);
  const std::shared_ptr<const Checkpoint> begun = with_rounded(*model, result, "blk.0.");
  const Calibrated rest = calibrate_target(begun, 1, true, false);
  EXPECT_EQ(rest.parts.front(), "layer 1");
  for (const auto& [name, found] : codes_of(rest)) {
    EXPECT_TRUE(found == codes.at(name)) << name;
  }
  CalibrationOps ops(cpu_ops(1));
  ThreadPool pool(1);
  const auto target = load_target(model, ops, {});
  const std::vector<std::vector<TokenId>> texts = {
      random_tokens(150, target->shape().vocabulary, 5)};
  const auto chunks = cut_chunks(texts, kBos, {40, 0}, target->shape());
  Calibrated unrounded;
  const std::vector<std::string> excluded = {"blk.0.*"};
  unrounded.plan = plan_hf_nvfp4(*model, excluded);
  CalibrationRequest request{*model, ops, pool, true, false, {}, {}};
  request.run = [&](int64_t last_layer) { run_chunks(*target, chunks, last_layer); };
  unrounded.weights = calibrate_nvfp4(unrounded.plan, request);
  int differing = 0;
  for (const auto& [name, other] : codes_of(unrounded)) {
    ASSERT_FALSE(name.starts_with("blk.0.")) << name;
    differing += other != codes.at(name) ? 1 : 0;
  }
  EXPECT_GT(differing, 3);
}

/// Keeps every row that one weight is multiplied with.
class RecordingOps final : public ForwardingOps {
 public:
  RecordingOps(std::unique_ptr<Ops> ops, std::string weight)
      : ForwardingOps(std::move(ops)), weight_(std::move(weight)) {}
  Matrix inputs;

  void matmul(ConstRows x, std::span<const Product> products) override {
    for (const Product& product : products) {
      for (int64_t r = 0; r < x.rows && product.weight->name == weight_; ++r) {
        inputs.emplace_back(x.row(r), x.row(r) + x.cols);
      }
    }
    ForwardingOps::matmul(x, products);
  }

 private:
  std::string weight_;
};

/// What the model multiplies that weight with on the text of the calibrations.
Matrix inputs_of(const std::shared_ptr<const Checkpoint>& model, const std::string& name) {
  RecordingOps recorder(cpu_ops(1), name);
  const auto target = load_target(model, recorder, {});
  const std::vector<std::vector<TokenId>> texts = {
      random_tokens(150, target->shape().vocabulary, 5)};
  run_chunks(*target, cut_chunks(texts, kBos, {40, 0}, target->shape()), 0);
  return std::move(recorder.inputs);
}

TEST(CalibrateNvfp4, WithInputScalesItRoundsForInputsAsW4A4RoundsThem) {
  for (const char* name : {"blk.0.attn_q.weight", "blk.0.attn_output.weight"}) {
    SCOPED_TRACE(name);
    const std::shared_ptr<const Checkpoint> model = make_gemma(whole_groups(3), 3);
    const Calibrated result = calibrate_target(model, 1, true, true);
    const auto planned = std::find_if(result.plan.begin(), result.plan.end(), [&](const auto& p) {
      return p.source->name == name;
    });
    const LogicalTensor& rounded = *planned->source;
    const LogicalTensor& weight = model->at(name);
    // Of the first layer, so that its inputs are those of the model as it was. Attention comes
    // after the products with q, k and v though: those are rounded last in the layer.
    const Matrix given = inputs_of(model, name);
    double largest = 0.0;
    for (const std::vector<double>& row : given) {
      for (const double value : row) {
        largest = std::max(largest, std::fabs(oracle_bf16(static_cast<float>(value))));
      }
    }
    const float input_scale = static_cast<float>(largest) / 2688.0F;
    EXPECT_EQ(rounded.input_scale, input_scale);
    const int64_t cols = weight.cols();
    const auto codes_for = [&](const Matrix& inputs) {
      ThreadPool pool(1);
      std::vector<double> flat;
      for (const std::vector<double>& row : oracle_hessian(inputs)) {
        flat.insert(flat.end(), row.begin(), row.end());
      }
      const HessianFactor factor(flat, std::vector<char>(static_cast<size_t>(cols), 0), pool);
      std::vector<float> values(static_cast<size_t>(weight.elements()));
      decode_rows(weight, 0, weight.rows(), values.data());
      for (float& value : values) {
        value = bf16_to_f32(f32_to_bf16(value));
      }
      std::vector<std::byte> codes(rounded.data.size());
      round_gptq(
          {values, rounded.block_scales, rounded.scale, weight.rows(), cols}, factor, codes, pool
      );
      return codes;
    };
    Matrix inputs;
    for (const std::vector<double>& row : given) {
      const std::vector<float> x(row.begin(), row.end());
      inputs.push_back(oracle_w4a4_row(x.data(), cols, input_scale));
    }
    EXPECT_TRUE(std::ranges::equal(codes_for(inputs), rounded.data));
    EXPECT_FALSE(std::ranges::equal(codes_for(given), rounded.data))
        << "rounding the inputs must be seen";
  }
}

/// Sum over `inputs` of the squared length of (a - b) times the input.
double output_error(const LogicalTensor& a, const LogicalTensor& b, const Matrix& inputs) {
  const int64_t cols = a.cols();
  std::vector<float> of_a(static_cast<size_t>(cols));
  std::vector<float> of_b(static_cast<size_t>(cols));
  double error = 0.0;
  for (int64_t row = 0; row < a.rows(); ++row) {
    decode_rows(a, row, 1, of_a.data());
    decode_rows(b, row, 1, of_b.data());
    for (const std::vector<double>& x : inputs) {
      double difference = 0.0;
      for (size_t c = 0; c < x.size(); ++c) {
        difference += (static_cast<double>(of_a[c]) - of_b[c]) * x[c];
      }
      error += difference * difference;
    }
  }
  return error;
}

TEST(CalibrateNvfp4, LosesLessOfALayersOutputThanRoundingToNearest) {
  double gptq_total = 0.0;
  double nearest_total = 0.0;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const std::shared_ptr<const Checkpoint> model = make_gemma(whole_groups(seed), seed);
    const Calibrated result = calibrate_target(model, 1, true, false);
    const CheckpointPlan plan = plan_hf_nvfp4(*model, {});
    ThreadPool pool(1);
    Nvfp4Weights to_nearest(*model, plan, pool);
    // The whole first layer is rounded for the inputs that it has in the model as it was.
    for (const char* part : {"attn_q", "attn_output", "ffn_gate", "ffn_up", "ffn_down"}) {
      const std::string name = fmt::format("blk.0.{}.weight", part);
      SCOPED_TRACE(fmt::format("{} seed {}", name, seed));
      const LogicalTensor& weight = model->at(name);
      const Matrix given = inputs_of(model, name);
      const auto rounded = std::find_if(result.plan.begin(), result.plan.end(), [&](const auto& p) {
        return p.source->name == name;
      });
      std::vector<std::byte> codes;
      std::vector<std::byte> scales;
      to_nearest.write(weight, scales, [&](std::span<const std::byte> bytes, int64_t) {
        codes.insert(codes.end(), bytes.begin(), bytes.end());
      });
      LogicalTensor nearest = weight;
      nearest.dtype = DType::kNVFP4ModelOpt;
      nearest.data = codes;
      nearest.block_scales = scales;
      nearest.scale = to_nearest.global_scale(weight);
      const double gptq = output_error(*rounded->source, weight, given);
      const double plain = output_error(nearest, weight, given);
      EXPECT_LT(gptq, plain);
      gptq_total += gptq / plain;
      nearest_total += 1.0;
    }
  }
  EXPECT_LT(gptq_total, 0.8 * nearest_total) << gptq_total / nearest_total;
}

/// `model` with its weights as NVFP4 of ModelOpt where they can be, rounded to nearest.
std::shared_ptr<Checkpoint> rounded_model(const GemmaShape& shape, uint64_t seed) {
  GemmaShape rounded = shape;
  rounded.dtype = DType::kNVFP4ModelOpt;
  return make_gemma(rounded, seed);
}

TEST(CalibrateNvfp4, WeightsThatAreNvfp4AlreadyGetInputScalesAndKeepTheirValues) {
  const GemmaShape shape = whole_groups(3);
  const std::shared_ptr<const Checkpoint> model = rounded_model(shape, 3);
  ASSERT_EQ(model->at("blk.0.attn_q.weight").dtype, DType::kNVFP4ModelOpt);
  const Calibrated result = calibrate_target(model, 1, false, true);
  int calibrated = 0;
  for (const PlannedTensor& planned : result.plan) {
    const LogicalTensor& before = model->at(planned.source->name);
    EXPECT_EQ(planned.source->data.data(), before.data.data());
    EXPECT_EQ(planned.source->scale, before.scale);
    if (planned.dtype == DType::kNVFP4ModelOpt && planned.source->name.starts_with("blk.")) {
      EXPECT_TRUE(planned.source->input_scale.has_value()) << planned.source->name;
      ++calibrated;
    }
  }
  EXPECT_GT(calibrated, 5);
}

TEST(CalibrateNvfp4, RefusesToRoundWhatIsRoundedAlready) {
  const std::shared_ptr<const Checkpoint> model = rounded_model(whole_groups(3), 3);
  for (const bool input_scales : {false, true}) {
    EXPECT_THAT(
        error_message([&] { calibrate_target(model, 1, true, input_scales); }),
        testing::HasSubstr("leave out --gptq")
    );
  }
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
