// What models say about their memory: the plan before loading against what loading then counts, and
// tables in memory, copied or inside a tied head, against tables in the file.
#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "octet/models/load_model.h"
#include "octet/models/memory_plan.h"
#include "support/model_runs.h"
#include "support/random_models.h"

namespace octet::test {
namespace {

GemmaShape random_gemma(RandomNumbers& random) {
  GemmaShape shape;
  shape.hidden = 32 * random.integer(1, 4);
  shape.vocabulary = random.integer(20, 200);
  shape.ple_vocabulary = shape.vocabulary;
  shape.ple_width = 8 * random.integer(0, 2);
  shape.window = random.integer(1, 100);
  return shape;
}

TEST(ModelMemoryPlan, BoundsWhatATargetTakes) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomNumbers random(seed);
    const auto checkpoint = make_gemma(random_gemma(random), seed);
    const auto ops = test_ops();
    constexpr int64_t kPositions = 300;
    TargetOptions options;
    options.max_rows = random.integer(8, 64);
    const int64_t block_rows = random.integer(1, 16);
    constexpr KvType kTypes[] = {KvType::kF32, KvType::kBF16, KvType::kQ8};
    const KvType type = kTypes[random.integer(0, 2)];
    const MemoryPlan plan = plan_target(*checkpoint, *ops, options, kPositions, type, block_rows);

    const auto model = load_target(checkpoint, *ops, options);
    EXPECT_EQ(plan.weights_bytes, model->memory().weights_bytes);
    EXPECT_EQ(plan.tables_bytes, 0);
    const auto cache = model->new_cache(kPositions, type);
    const std::vector<TokenId> text = random_tokens(kPositions, model->shape().vocabulary, seed);
    const std::vector<int> taps = {0, 2};
    ForwardRows out;
    for (int64_t at = 0; at < kPositions;) {
      const int64_t rows = std::min(options.max_rows, kPositions - at);
      const SequenceRows segment = {
          cache.get(),
          std::span(text).subspan(static_cast<size_t>(at), static_cast<size_t>(rows)),
          std::min(rows, block_rows),
          0};
      model->forward({&segment, 1}, {}, out);
      at += rows;
    }
    EXPECT_GE(plan.cache_bytes, cache->bytes());
    EXPECT_LE(plan.cache_bytes, cache->bytes() * 3 / 2) << "a bound that says nothing";
    EXPECT_GT(model->memory().scratch_bytes, 0);
    EXPECT_GE(plan.scratch_bytes, model->memory().scratch_bytes);
  }
}

TEST(ModelMemoryPlan, BoundsWhatADrafterTakes) {
  for (const int64_t block : {2, 8, 16, 64}) {
    SCOPED_TRACE(testing::Message() << "block " << block);
    const auto ops = test_ops();
    const auto target = load_target(make_gemma({}, 3), *ops, {});
    DFlashShape shape;
    shape.block = block;
    shape.window = 64;
    const auto checkpoint = make_dflash(shape, 4);
    constexpr int64_t kPositions = 200;
    const int64_t vocabulary = target->shape().vocabulary;
    const MemoryPlan plan = plan_drafter(*checkpoint, *ops, {}, kPositions, vocabulary);
    const auto drafter = load_drafter(checkpoint, *ops, *target, {});
    EXPECT_EQ(plan.weights_bytes, drafter->memory().weights_bytes);
    const auto cache = drafter->new_cache(kPositions);
    const int64_t cols =
        static_cast<int64_t>(drafter->shape().taps.size()) * target->shape().hidden;
    std::vector<float> features = random_values(kPositions * cols, 5, 1.0F);
    drafter->inject(*cache, {features.data(), kPositions, cols, cols});
    std::vector<float> logits(static_cast<size_t>((block - 1) * vocabulary));
    const DraftRequest request = {cache.get(), 7};
    drafter->draft({&request, 1}, {logits.data(), block - 1, vocabulary, vocabulary});
    const auto logit_bytes = static_cast<int64_t>(logits.size() * sizeof(float));
    EXPECT_GE(plan.cache_bytes, cache->bytes());
    EXPECT_GE(plan.scratch_bytes, drafter->memory().scratch_bytes + logit_bytes);
  }
}

int64_t bytes_of(const Checkpoint& checkpoint, std::string_view name) {
  const LogicalTensor* tensor = checkpoint.find(name);
  return tensor == nullptr ? 0 : std::ssize(tensor->data) + std::ssize(tensor->block_scales);
}

/// f(shape) for types of the embedding, rows that do and do not fill the last tile, tied and own
/// heads.
template <class F>
void for_each_shape_of_tables(F f) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kQ8_0, DType::kQ4_0, DType::kQ6K}) {
    for (const int64_t vocabulary : {64, 77}) {
      for (const bool own_head : {false, true}) {
        SCOPED_TRACE(
            testing::Message() << dtype_facts(dtype).name << ", " << vocabulary
                               << " tokens, own head " << own_head
        );
        GemmaShape shape;
        shape.dtype = dtype;
        shape.hidden = dtype == DType::kQ6K ? 256 : 32;
        shape.vocabulary = vocabulary;
        shape.own_head = own_head;
        shape.ple_width = dtype == DType::kQ6K && vocabulary == 77 ? 0 : shape.ple_width;
        f(shape);
      }
    }
  }
}

TargetOptions tables_in_memory() {
  TargetOptions options;
  options.tables = TablePlace::kMemory;
  return options;
}

TEST(Tables, InMemoryGiveTheRowsOfTheFile) {
  for_each_shape_of_tables([](const GemmaShape& shape) {
    const auto checkpoint = make_gemma(shape, 9);
    const auto ops = test_ops();
    const auto from_file = load_target(checkpoint, *ops, {});
    const auto from_memory = load_target(checkpoint, *ops, tables_in_memory());
    const std::vector<TokenId> text = random_tokens(40, from_file->shape().vocabulary, 2);
    const TargetRun expected = run_target(*from_file, text, 8, {}, KvType::kBF16);
    const TargetRun found = run_target(*from_memory, text, 8, {}, KvType::kBF16);
    EXPECT_EQ(first_not_finite(expected.logits), "");
    EXPECT_EQ(first_difference(found.logits, expected.logits), "");
  });
}

/// Rows of a tied head are read out of its tiles: there is no copy of them beside it.
TEST(Tables, InMemoryLeaveOutWhatTheHeadHolds) {
  for_each_shape_of_tables([](const GemmaShape& shape) {
    const auto checkpoint = make_gemma(shape, 9);
    const int64_t embedding = bytes_of(*checkpoint, "token_embd.weight");
    const int64_t per_layer = bytes_of(*checkpoint, "per_layer_token_embd.weight");
    ASSERT_GT(embedding, 0);
    const auto ops = test_ops();
    const ModelMemory file = load_target(checkpoint, *ops, {})->memory();
    const ModelMemory memory = load_target(checkpoint, *ops, tables_in_memory())->memory();
    EXPECT_EQ(file.tables_bytes, embedding + per_layer);
    EXPECT_EQ(memory.tables_bytes, shape.own_head ? embedding + per_layer : per_layer);
    EXPECT_EQ(memory.weights_bytes, file.weights_bytes);
    const MemoryPlan plan = plan_target(*checkpoint, *ops, tables_in_memory(), 10, KvType::kF32, 8);
    EXPECT_EQ(plan.tables_bytes, memory.tables_bytes);
    EXPECT_EQ(plan.weights_bytes, memory.weights_bytes);
  });
}

}  // namespace
}  // namespace octet::test
