// Law 2 on whole models: random gemma4 targets with random drafters, every structural variety,
// windows that wrap. Exact equality of tokens between plain decoding and every drafter, at every
// block length, thread count and company.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/kernels/ops.h"
#include "octet/models/load_model.h"
#include "octet/speculation/drafters/dflash_drafter.h"
#include "octet/speculation/drafters/drafter_list.h"
#include "octet/speculation/drafters/no_drafter.h"
#include "support/random_models.h"
#include "support/sequence_runs.h"
#include "support/stored_head.h"

namespace octet {
namespace {

using test::RandomNumbers;
using test::RunResult;
using test::RunSettings;

struct RandomPair {
  std::unique_ptr<Ops> ops;
  std::unique_ptr<TargetModel> target;
  std::unique_ptr<DraftModel> draft_model;
  int64_t vocabulary = 0;

  /// With a shortlist the drafter reads some rows of the head, in a smaller type where it can.
  RandomPair(uint64_t seed, int threads, bool shortlist = false) {
    CpuOptions options;
    options.threads = threads;
    ops = make_cpu_ops(options);
    const test::GemmaShape shape = test::random_gemma_shape(seed);
    TargetOptions target_options;
    target_options.max_rows = 8 + static_cast<int64_t>(seed % 9);
    target = load_target(test::make_gemma(shape, seed), *ops, target_options);
    const auto file = test::make_dflash(test::random_dflash_shape(shape, seed + 1), seed + 1);
    DrafterOptions drafter_options;
    if (shortlist) {
      const LogicalTensor* own = file->find("output.weight");
      drafter_options.draft_head =
          random_head(own != nullptr ? *own : *target->head_tensor(), seed);
    }
    draft_model = load_drafter(file, *ops, *target, drafter_options);
    vocabulary = shape.vocabulary;
  }

  static std::shared_ptr<const Checkpoint> random_head(const LogicalTensor& whole, uint64_t seed) {
    RandomNumbers random(seed);
    std::vector<TokenId> tokens;
    for (int64_t token = 0; token < whole.rows(); ++token) {
      if (tokens.empty() || random.integer(0, 2) == 0) {
        tokens.push_back(static_cast<TokenId>(token));
      }
    }
    const bool blocks = whole.cols() % dtype_facts(DType::kQ8_0).block_values == 0;
    return test::stored_head(whole, tokens, blocks ? DType::kQ8_0 : DType::kF32);
  }
};

RunSettings random_settings(uint64_t seed, int64_t vocabulary) {
  RandomNumbers random(seed);
  RunSettings settings;
  settings.prompt = test::random_tokens(random.integer(1, 60), vocabulary, seed);
  settings.max_tokens = random.integer(1, 40);
  settings.draft_max = static_cast<int>(random.integer(1, kMaxDrafts));
  settings.adapt_drafts = random.integer(0, 1) == 0;
  SamplingParams& sampling = settings.sampling;
  sampling.seed = random.bits();
  if (random.integer(0, 2) != 0) {
    sampling.temperature = static_cast<float>(0.2 + random.uniform());
    sampling.top_k = random.integer(0, 1) * random.integer(1, vocabulary);
    sampling.top_p = static_cast<float>(1.0 - 0.5 * random.uniform() * random.uniform());
    sampling.min_p = random.integer(0, 1) == 0 ? 0.0F : static_cast<float>(0.2 * random.uniform());
  }
  if (random.integer(0, 1) == 0) {
    sampling.repetition_penalty = static_cast<float>(0.8 + 0.6 * random.uniform());
    sampling.frequency_penalty = static_cast<float>(random.uniform() - 0.5);
    sampling.presence_penalty = static_cast<float>(random.uniform() - 0.5);
    sampling.penalty_last_n = random.integer(0, 6);
  }
  for (int64_t biased = random.integer(0, 3); biased > 0; --biased) {
    const auto token = static_cast<TokenId>(random.integer(0, vocabulary - 1));
    sampling.logit_bias.push_back({token, static_cast<float>(8.0 * random.uniform() - 4.0)});
  }
  if (random.integer(0, 1) == 0) {
    settings.stop_tokens = {static_cast<TokenId>(random.integer(0, vocabulary - 1))};
  }
  return settings;
}

RunResult run_drafted(
    std::string_view name, RandomPair& pair, const RunSettings& settings, const RunResult& plain
) {
  DrafterInputs inputs;
  inputs.draft_model = std::move(pair.draft_model);
  inputs.references = {whole_text(settings, plain)};
  inputs.max_drafts = kMaxDrafts;
  const auto drafter = new_drafter(name, *pair.target, std::move(inputs));
  return test::run(*pair.target, *drafter, settings);
}

TEST(PairLaws, TextIsTheSameForEveryDrafter) {
  for (uint64_t seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE(seed);
    RandomPair plain_pair(seed, 1);
    const RunSettings settings = random_settings(seed, plain_pair.vocabulary);
    NoDrafter none;
    const RunResult plain = test::run(*plain_pair.target, none, settings);
    for (const std::string_view name : {"shortlist", "dflash", "oracle", "liar", "half"}) {
      const bool shortlist = name == "shortlist";
      RandomPair pair(seed, seed % 6 == 0 ? 2 : 1, shortlist);
      const RunResult drafted = run_drafted(shortlist ? "dflash" : name, pair, settings, plain);
      EXPECT_EQ(drafted, plain) << name;
      for (const SequenceStep& step : drafted.steps) {
        if (name == "oracle") {
          EXPECT_EQ(step.accepted, step.drafted);
        }
        if (name == "liar") {
          EXPECT_EQ(step.accepted, 0);
        }
      }
    }
  }
}

// Every drafter, every block length, every way to choose drafts, with and without a block policy,
// greedy and sampled: one text.
TEST(PairLaws, EveryBlockLengthAndChoiceAndPolicy) {
  uint64_t seed = 0;  // of a drafter whose blocks are longer than most
  while (test::random_dflash_shape(test::random_gemma_shape(seed), seed + 1).block <= 8) {
    ++seed;
  }
  SCOPED_TRACE(seed);
  RandomPair pair(seed, 1);
  RunSettings settings = random_settings(seed, pair.vocabulary);
  settings.max_tokens = 60;
  settings.stop_tokens.clear();
  DFlashDrafter dflash(std::move(pair.draft_model), pair.target->final_softcap());
  RandomPair with_shortlist(seed, 1, true);
  DFlashDrafter shortlist(
      std::move(with_shortlist.draft_model), with_shortlist.target->final_softcap()
  );
  NoDrafter none;
  for (const float temperature : {0.0F, 0.8F}) {
    settings.sampling.temperature = temperature;
    settings.draft_max = kMaxDrafts;
    settings.adapt_drafts = false;
    const RunResult plain = test::run(*pair.target, none, settings);
    std::vector<std::unique_ptr<Drafter>> scripted;
    std::vector<Drafter*> drafters = {&none, &dflash, &shortlist};
    for (const std::string_view name : {"oracle", "liar", "half"}) {
      DrafterInputs inputs;
      inputs.references = {whole_text(settings, plain)};
      inputs.max_drafts = kMaxDrafts;
      scripted.push_back(new_drafter(name, *pair.target, std::move(inputs)));
      drafters.push_back(scripted.back().get());
    }
    for (Drafter* drafter : drafters) {
      for (int block = 1; block <= drafter->max_drafts() + 1; ++block) {
        for (const DraftChoice choice :
             {DraftChoice::kBySureness, DraftChoice::kArgmax, DraftChoice::kCoupled}) {
          settings.draft_max = block - 1;
          settings.draft_choices.rows = {choice};
          settings.adapt_drafts = choice == DraftChoice::kBySureness && block % 2 == 0;
          EXPECT_EQ(test::run(*pair.target, *drafter, settings), plain)
              << drafter->name() << " block " << block << " temperature " << temperature;
        }
      }
    }
  }
}

TEST(PairLaws, CompanyChangesNothing) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    RandomPair pair(seed, 1);
    DFlashDrafter drafter(std::move(pair.draft_model), pair.target->final_softcap());
    std::vector<RunResult> alone;
    std::vector<std::unique_ptr<Sequence>> sequences;
    std::vector<Sequence*> batch;
    for (uint64_t i = 0; i < 4; ++i) {
      const RunSettings settings = random_settings(seed * 10 + i, pair.vocabulary);
      alone.push_back(test::run(*pair.target, drafter, settings));
      sequences.push_back(test::new_sequence(*pair.target, drafter, settings));
      batch.push_back(sequences.back().get());
    }
    Cycle cycle(*pair.target, drafter);
    while (!batch.empty()) {
      cycle.step(batch);
      std::erase_if(batch, [](const Sequence* s) { return s->finish != FinishReason::kNone; });
    }
    for (size_t i = 0; i < sequences.size(); ++i) {
      EXPECT_EQ(test::reply_of(*sequences[i]), alone[i].reply) << i;
    }
  }
}

}  // namespace
}  // namespace octet
