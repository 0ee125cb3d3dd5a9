// Targets and drafters with random weights against published outputs: `exact` is a float64 forward
// pass on the dequantised weights, `peer` an independent engine that rounds activations to 8-bit
// blocks. Limits are those that the data's README derives for an engine of the same activation
// rounding.
#include <gtest/gtest.h>

#include "octet/formats/open_checkpoint.h"
#include "octet/models/dflash/forward.h"
#include "support/golden_files.h"
#include "support/model_runs.h"

namespace octet::test {
namespace {

struct Deviation {
  double largest = 0.0;
  double sum = 0.0;
  int64_t count = 0;

  void add(const FloatRows& found, const FloatRows& expected) {
    ASSERT_EQ(found.size(), expected.size());
    ASSERT_EQ(first_not_finite(found), "");
    for (size_t r = 0; r < found.size(); ++r) {
      ASSERT_EQ(found[r].size(), expected[r].size());
      for (size_t c = 0; c < found[r].size(); ++c) {
        const double difference = std::abs(static_cast<double>(found[r][c]) - expected[r][c]);
        largest = std::max(largest, difference);
        sum += difference;
        ++count;
      }
    }
  }
  double mean() const { return count == 0 ? 0.0 : sum / static_cast<double>(count); }
};

struct Limits {
  double target_max;
  double target_mean;
  double taps_max;
  double draft_max;
  double draft_mean;
};

// Measured on an engine with float32 activations: 1.7e-4 / 1e-5 and 5e-5 / 9e-6.
constexpr Limits kFloat32 = {4e-4, 2e-5, 1e-4, 2e-4, 2e-5};
// Twice the means of the peer; maxima are only a guard.
constexpr Limits kBF16 = {2.2, 0.14, 0.6, 0.52, 0.10};
constexpr Limits kQ8 = {3.8, 0.42, 0.6, 2.6, 0.42};
constexpr Limits kQ4 = {4.8, 0.60, 0.8, 2.8, 0.48};

struct PairCase {
  const char* name;  // folder of results
  const char* target;
  const char* drafter;
  const char* results;  // "exact" or "peer"
  Limits limits;
};

const std::vector<PairCase> kPairs = {
    {"tiny-bf16", "tiny-bf16.gguf", "tiny-dflash-bf16.gguf", "exact", kFloat32},
    {"tiny-bf16", "hf-tiny", "hf-tiny-dflash", "exact", kFloat32},
    {"tinyq-q8_0", "tinyq-q8_0.gguf", "tinyq-dflash-q8_0.gguf", "exact", kQ8},
    {"tinyq-q8_0", "tinyq-q8_0.gguf", "tinyq-dflash-q8_0.gguf", "peer", kQ8},
    {"tinyq-q4_k_m", "tinyq-q4_k_m.gguf", "tinyq-dflash-bf16.gguf", "exact", kQ4},
    {"tinyq-q4_k_m", "tinyq-q4_k_m.gguf", "tinyq-dflash-bf16.gguf", "peer", kQ4},
    {"tinyq-q4_k_m+draft-q4_1", "tinyq-q4_k_m.gguf", "tinyq-dflash-q4_1.gguf", "exact", kQ4},
    {"tinyq-q4_k_m+draft-q4_1", "tinyq-q4_k_m.gguf", "tinyq-dflash-q4_1.gguf", "peer", kQ4},
};

const std::vector<const char*> kSequences = {"s001", "s007", "s033", "s200"};

/// The project keeps the BF16 pair with its shorter sequences; the rest lies beside it.
std::string tiny(const std::string& relative) {
  const std::string beside = shared_path("golden/tiny/" + relative);
  return exists(beside) ? beside : OCTET_SOURCE_DIR "/tests/golden/tiny/" + relative;
}

/// As `tiny`; the target's folder lies beside the project alone, which keeps its GGUF file.
std::string tiny_target(const std::string& relative) {
  const std::string path = tiny(relative);
  return relative == "hf-tiny" && !exists(path) ? tiny("tiny-bf16.gguf") : path;
}

std::vector<TokenId> sequence_tokens(const char* name) {
  return token_list(*read_json(tiny("sequences.json")).find_array(name));
}

class Engine {
 public:
  Engine(const std::string& target_path, const std::string& drafter_path, DraftHead head)
      : ops_(test_ops(2)), target_(load_target(open_checkpoint(target_path), *ops_, {})) {
    DrafterOptions options;
    options.kv_type = KvType::kF32;
    options.head = head;
    drafter_ = load_drafter(open_checkpoint(drafter_path), *ops_, *target_, options);
  }

  TargetModel& target() { return *target_; }
  DraftModel& drafter() { return *drafter_; }

  TargetRun run(const std::vector<TokenId>& tokens) {
    return run_target(*target_, tokens, 256, drafter_->shape().taps, KvType::kF32);
  }

  /// Context: all positions but the last, whose token is the anchor.
  FloatRows draft_after(const TargetRun& run, const std::vector<TokenId>& tokens) {
    const auto context = static_cast<int64_t>(tokens.size()) - 1;
    const auto cache = drafter_->new_cache(context + 1);
    inject(*drafter_, *cache, {run.features.begin(), run.features.begin() + context});
    return draft(*drafter_, *cache, tokens.back());
  }

  FloatRows fused(const TargetRun& run) {
    const auto rows = static_cast<int64_t>(run.features.size()) - 1;
    const int64_t hidden = target_->shape().hidden;
    std::vector<float> features;
    std::vector<float> result(static_cast<size_t>(rows * hidden));
    const Rows out{result.data(), rows, hidden, hidden};
    dynamic_cast<DFlashModel&>(*drafter_).fuse(as_rows(run.features, features).slice(0, rows), out);
    return copy_of(out);
  }

 private:
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<TargetModel> target_;
  std::unique_ptr<DraftModel> drafter_;
};

FloatRows without_first(FloatRows rows) {
  rows.erase(rows.begin());
  return rows;
}

class TinyPair : public testing::TestWithParam<PairCase> {};

TEST_P(TinyPair, LogitsTapsFusionAndDrafts) {
  const PairCase& pair = GetParam();
  Engine engine(tiny_target(pair.target), tiny(pair.drafter), DraftHead::kOwnIfPresent);
  const int64_t vocabulary = engine.target().shape().vocabulary;
  const int64_t hidden = engine.target().shape().hidden;
  const JsonValue summary = read_json(tiny(std::string(pair.name) + "/summary.json"));
  Deviation target;
  Deviation taps;
  Deviation fused;
  Deviation drafts;
  for (const char* name : kSequences) {
    SCOPED_TRACE(name);
    const std::string prefix = fmt::format("{}/{}/{}.", pair.name, pair.results, name);
    const auto tokens = sequence_tokens(name);
    const TargetRun run = engine.run(tokens);
    if (exists(tiny(prefix + "logits.f32"))) {
      FloatRows logits = run.logits;
      if (std::string(name) == "s200") {
        logits.clear();
        for (const int32_t row : token_list(*summary.find_array("rows_s200"))) {
          logits.push_back(run.logits[static_cast<size_t>(row)]);
        }
      }
      target.add(logits, read_f32_rows(tiny(prefix + "logits.f32"), vocabulary));
    }
    if (exists(tiny(prefix + "taps.f32"))) {
      const auto cols = static_cast<int64_t>(run.features[0].size());
      taps.add(run.features, read_f32_rows(tiny(prefix + "taps.f32"), cols));
    }
    if (exists(tiny(prefix + "draft_fused.f32"))) {
      fused.add(engine.fused(run), read_f32_rows(tiny(prefix + "draft_fused.f32"), hidden));
    }
    if (exists(tiny(prefix + "draft_logits.f32"))) {
      const FloatRows expected = read_f32_rows(tiny(prefix + "draft_logits.f32"), vocabulary);
      drafts.add(engine.draft_after(run, tokens), without_first(expected));
    }
  }
  fmt::print(
      "{} {} against {}: target {:.3g} / {:.3g}, taps {:.3g}, fused {:.3g}, drafts {:.3g} / "
      "{:.3g} (max / mean)\n",
      pair.target,
      pair.drafter,
      pair.results,
      target.largest,
      target.mean(),
      taps.largest,
      fused.largest,
      drafts.largest,
      drafts.mean()
  );
  EXPECT_GT(drafts.count, 0);
  EXPECT_GT(fused.count, 0);
  // Only the pair whose drafter alone is quantized has no results of its own for the target.
  EXPECT_EQ(target.count == 0, pair.name == std::string("tinyq-q4_k_m+draft-q4_1"));
  EXPECT_LE(target.largest, pair.limits.target_max);
  EXPECT_LE(target.mean(), pair.limits.target_mean);
  EXPECT_LE(taps.largest, pair.limits.taps_max);
  EXPECT_LE(fused.largest, pair.limits.taps_max / 2);  // they lie behind a norm
  EXPECT_LE(drafts.largest, pair.limits.draft_max);
  EXPECT_LE(drafts.mean(), pair.limits.draft_mean);
}

INSTANTIATE_TEST_SUITE_P(
    Golden,
    TinyPair,
    testing::ValuesIn(
        present<PairCase>(kPairs, [](const PairCase& pair) { return tiny_target(pair.target); })
    ),
    [](const testing::TestParamInfo<PairCase>& param) {
      std::string name = fmt::format("{}_{}", param.param.drafter, param.param.results);
      std::replace_if(
          name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_'
      );
      return name;
    }
);

struct GreedyCase {
  const char* name;
  const char* results;  // their folder
  const char* target;
  const char* drafter;
  double tolerance;
};

class TinyGreedy : public testing::TestWithParam<GreedyCase> {};

INSTANTIATE_TEST_SUITE_P(
    Golden,
    TinyGreedy,
    testing::ValuesIn(present<GreedyCase>(
        {{"Float32", "tiny-bf16", "tiny-bf16.gguf", "tiny-dflash-bf16.gguf", 1e-3},
         {"Q8", "tinyq-q8_0", "tinyq-q8_0.gguf", "tinyq-dflash-q8_0.gguf", 1.0},
         {"Q4", "tinyq-q4_k_m", "tinyq-q4_k_m.gguf", "tinyq-dflash-bf16.gguf", 1.6}},
        [](const GreedyCase& greedy) { return tiny(greedy.target); }
    )),
    [](const testing::TestParamInfo<GreedyCase>& param) { return param.param.name; }
);

/// The exact reference's own continuation is fed; wherever its margin exceeds the tolerance the
/// best token must be its.
TEST_P(TinyGreedy, ContinuesAsTheReference) {
  const auto& [name, results, target, drafter, tolerance] = GetParam();
  Engine engine(tiny(target), tiny(drafter), DraftHead::kOwnIfPresent);
  const JsonValue summary = read_json(tiny(std::string(results) + "/summary.json"));
  int compared = 0;
  for (const char* sequence : {"s007", "s033"}) {
    const JsonValue& greedy = *summary.find("greedy")->find(sequence);
    const auto next = token_list(*greedy.find_array("tokens"));
    const JsonArray& margins = *greedy.find_array("margins");
    auto tokens = sequence_tokens(sequence);
    const size_t first = tokens.size() - 1;
    tokens.insert(tokens.end(), next.begin(), next.end() - 1);
    const TargetRun run = engine.run(tokens);
    for (size_t i = 0; i < next.size(); ++i) {
      if (margins[i].number().value() > tolerance) {
        const auto& row = run.logits[first + i];
        const auto best = std::max_element(row.begin(), row.end()) - row.begin();
        EXPECT_EQ(best, next[i]) << sequence << " step " << i;
        ++compared;
      }
    }
  }
  fmt::print("{}: {} of 64 greedy steps compared\n", name, compared);
  EXPECT_GT(compared, 0);
}

/// The step protocol with a real rollback: draft, verify, take back, inject what was kept.
TEST(TinyCycles, DraftsAndVerificationOfTheReference) {
  Engine engine(tiny("tiny-bf16.gguf"), tiny("tiny-dflash-bf16.gguf"), DraftHead::kOwnIfPresent);
  const std::vector<int>& taps = engine.drafter().shape().taps;
  const JsonValue summary = read_json(tiny("tiny-bf16/summary.json"));
  const auto prompt = sequence_tokens("s033");
  const auto cache = engine.target().new_cache(256, KvType::kF32);
  const auto context = engine.drafter().new_cache(256);
  TargetRun run;
  forward_all(engine.target(), *cache, prompt, taps, run);
  inject(engine.drafter(), *context, run.features);
  for (const JsonValue& cycle : *summary.find_array("speculative_cycles_s033")) {
    ASSERT_EQ(cache->length(), cycle.find_integer("n_past").value());
    const auto anchor = static_cast<TokenId>(cycle.find_integer("anchor").value());
    const auto drafts = token_list(*cycle.find_array("draft"));
    const FloatRows found = draft(engine.drafter(), *context, anchor);
    if (cycle.find_number("draft_margin_min").value() > 1e-3) {
      for (size_t j = 0; j < drafts.size(); ++j) {
        const auto best = std::max_element(found[j].begin(), found[j].end()) - found[j].begin();
        EXPECT_EQ(best, drafts[j]) << "row " << j;
      }
    }
    std::vector<TokenId> block = {anchor};
    block.insert(block.end(), drafts.begin(), drafts.end());
    TargetRun verify;
    forward_all(engine.target(), *cache, block, taps, verify);
    const auto expected = token_list(*cycle.find_array("target_argmax"));
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto& row = verify.logits[i];
      EXPECT_EQ(std::max_element(row.begin(), row.end()) - row.begin(), expected[i]) << "row " << i;
    }
    const int64_t kept = cycle.find_integer("accepted").value() + 1;
    cache->truncate(cycle.find_integer("n_past").value() + kept);
    verify.features.resize(static_cast<size_t>(kept));
    inject(engine.drafter(), *context, verify.features);
  }
}

/// NVFP4 in ModelOpt's layout, with the drafter's own head and with the target's.
TEST(TinyNvfp4, DraftsWithEitherHead) {
  for (const DraftHead head : {DraftHead::kOwnIfPresent, DraftHead::kTarget}) {
    const char* suffix = head == DraftHead::kTarget ? "draft_logits_target_head" : "draft_logits";
    Engine engine(tiny_target("hf-tiny"), tiny("hf-tiny-dflash-nvfp4"), head);
    Deviation drafts;
    Deviation fused;
    for (const char* name : {"s007", "s033", "s200"}) {
      const std::string prefix = fmt::format("hf-tiny-dflash-nvfp4/exact/{}.", name);
      const auto tokens = sequence_tokens(name);
      const TargetRun run = engine.run(tokens);
      const FloatRows expected =
          read_f32_rows(tiny(prefix + suffix + ".f32"), engine.target().shape().vocabulary);
      drafts.add(engine.draft_after(run, tokens), without_first(expected));
      if (exists(tiny(prefix + "draft_fused.f32"))) {
        const int64_t hidden = engine.target().shape().hidden;
        fused.add(engine.fused(run), read_f32_rows(tiny(prefix + "draft_fused.f32"), hidden));
      }
    }
    fmt::print(
        "hf-tiny-dflash-nvfp4 {}: fused {:.3g}, drafts {:.3g} / {:.3g} (max / mean)\n",
        suffix,
        fused.largest,
        drafts.largest,
        drafts.mean()
    );
    EXPECT_GT(fused.count, 0);
    EXPECT_LE(fused.largest, 0.03);
    EXPECT_LE(drafts.largest, kBF16.draft_max);
    EXPECT_LE(drafts.mean(), kBF16.draft_mean);
  }
}

}  // namespace
}  // namespace octet::test
