// The laws of the verify cycle, over random targets, prompts and settings: exact equality of
// tokens.

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/speculation/cycle.h"
#include "octet/speculation/drafters/dflash_drafter.h"
#include "octet/speculation/drafters/drafter_list.h"
#include "octet/speculation/drafters/no_drafter.h"
#include "octet/speculation/drafters/scripted_drafter.h"
#include "support/scripted_draft_model.h"
#include "support/scripted_target.h"
#include "support/sequence_runs.h"

namespace octet {
namespace {

using test::ForesightSettings;
using test::reply_of;
using test::run;
using test::RunResult;
using test::RunSettings;
using test::ScriptedDraftModel;
using test::ScriptedTarget;

/// A random case: target, settings, and how good the drafter double is.
struct Case {
  uint64_t seed = 0;
  double width = 4.0;
  int64_t vocabulary = 0;
  int64_t rows_limit = 16;
  RunSettings settings;

  ScriptedTarget target() const {
    ScriptedTarget target(vocabulary, test::pseudo_random_rule(seed, width));
    target.rows_limit = rows_limit;
    return target;
  }
  ForesightSettings foresight(double noise_width) const { return {seed, width, noise_width}; }
};

void randomise_choice(std::mt19937& random, SamplingParams& sampling, int64_t vocabulary) {
  std::uniform_real_distribution<float> unit(0.0F, 1.0F);
  sampling.seed = random();
  if (random() % 3 != 0) {
    sampling.temperature = 0.3F + 1.2F * unit(random);
  }
  if (random() % 2 == 0) {
    sampling.top_k = 1 + static_cast<int64_t>(random()) % vocabulary;
  }
  if (random() % 2 == 0) {
    sampling.top_p = 0.3F + 0.7F * unit(random);
  }
  if (random() % 3 == 0) {
    sampling.min_p = 0.3F * unit(random);
  }
  if (random() % 2 == 0) {
    sampling.repetition_penalty = 0.7F + unit(random);
    sampling.presence_penalty = 2.0F * unit(random) - 1.0F;
    sampling.frequency_penalty = 2.0F * unit(random) - 1.0F;
    sampling.penalty_last_n = static_cast<int64_t>(random() % 9);
    sampling.penalty_scope =
        random() % 2 == 0 ? PenaltyScope::kReply : PenaltyScope::kPromptAndReply;
  }
  if (random() % 2 == 0) {
    sampling.logit_bias = {
        {static_cast<TokenId>(static_cast<int64_t>(random()) % vocabulary), 3.0F * unit(random)},
        {0, kBanBias}};
  }
}

Case random_case(uint64_t seed) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  Case c;
  c.seed = seed;
  c.vocabulary = seed % 4 == 0 ? 300 : 3 + static_cast<int64_t>(random() % 20);
  c.width = 1.0 + static_cast<double>(random() % 6);
  c.rows_limit = 8 + static_cast<int64_t>(random() % 12);
  c.settings.prompt.clear();
  for (size_t i = 0; i < 1 + random() % 40; ++i) {
    c.settings.prompt.push_back(static_cast<TokenId>(static_cast<int64_t>(random()) % c.vocabulary)
    );
  }
  randomise_choice(random, c.settings.sampling, c.vocabulary);
  c.settings.max_tokens = 1 + static_cast<int64_t>(random() % 50);
  if (random() % 4 == 0) {
    c.settings.context_length =
        std::ssize(c.settings.prompt) + 1 + static_cast<int64_t>(random() % 30);
  }
  if (random() % 2 == 0) {
    c.settings.stop_tokens = {
        static_cast<TokenId>(static_cast<int64_t>(random()) % c.vocabulary),
        static_cast<TokenId>(c.vocabulary - 1)};
  }
  return c;
}

RunResult run_plain(const Case& c) {
  ScriptedTarget target = c.target();
  NoDrafter none;
  return run(target, none, c.settings);
}

std::unique_ptr<Drafter> scripted(Script script, const Case& c, const RunResult& reference) {
  auto drafter = std::make_unique<ScriptedDrafter>(script, c.vocabulary, kMaxDrafts);
  drafter->add_reference(whole_text(c.settings, reference));
  return drafter;
}

// Law 2: the text does not depend on the drafter nor on the block length.
TEST(CycleLaws, TextIsTheSameForEveryDrafterAndBlockLength) {
  for (uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(seed);
    Case c = random_case(seed);
    const RunResult plain = run_plain(c);
    ASSERT_FALSE(plain.reply.empty());
    c.settings.draft_max = static_cast<int>(seed % (kMaxDrafts + 1));
    for (const Script script : {Script::kOracle, Script::kLiar, Script::kHalf}) {
      ScriptedTarget target = c.target();
      target.poison_beside = {whole_text(c.settings, plain)};
      const auto drafter = scripted(script, c, plain);
      ASSERT_EQ(run(target, *drafter, c.settings), plain) << drafter->name();
    }
    for (const double noise_width : {0.0, 2.0, 50.0}) {
      ScriptedTarget target = c.target();
      target.poison_beside = {whole_text(c.settings, plain)};
      ForesightSettings foresight = c.foresight(noise_width);
      foresight.block = seed % 2 == 0 ? 8 : kMaxDrafts + 1;
      DFlashDrafter drafter(std::make_unique<ScriptedDraftModel>(target, foresight), 0.0F);
      const std::array<std::vector<DraftChoice>, 3> choices = {
          {{DraftChoice::kBySureness},
           {DraftChoice::kCoupled},
           {DraftChoice::kCoupled, DraftChoice::kArgmax}}};
      c.settings.draft_choices.rows = choices[seed % 3];
      c.settings.adapt_drafts = seed % 5 < 3;
      ASSERT_EQ(run(target, drafter, c.settings), plain) << noise_width;
    }
  }
}

TEST(CycleLaws, OracleIsAlwaysRightLiarNeverHalfHalfway) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Case c = random_case(seed);
    const RunResult plain = run_plain(c);
    const std::map<Script, int> right_rows = {
        {Script::kOracle, kMaxDrafts}, {Script::kLiar, 0}, {Script::kHalf, 3}};
    for (const auto& [script, right] : right_rows) {
      ScriptedTarget target = c.target();
      const auto drafter = scripted(script, c, plain);
      for (const SequenceStep& step : run(target, *drafter, c.settings).steps) {
        EXPECT_EQ(step.accepted, std::min(right, step.drafted));
      }
    }
  }
}

// With a model that foresees greedy text exactly, every draft of every step must be right: a
// feature that is missing, misplaced, doubled, or of a rejected row would show.
TEST(CycleLaws, DraftContextIsExactAtEveryStep) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Case c = random_case(seed);
    c.settings.sampling = {};  // greedy
    ScriptedTarget target = c.target();
    ForesightSettings foresight = c.foresight(0.0);
    foresight.window = static_cast<int64_t>(seed % 3) * 20;
    auto owned = std::make_unique<ScriptedDraftModel>(target, foresight);
    const ScriptedDraftModel& model = *owned;
    DFlashDrafter drafter(std::move(owned), 0.0F);
    const RunResult result = run(target, drafter, c.settings);
    for (const SequenceStep& step : result.steps) {
      EXPECT_EQ(step.accepted, step.drafted);
    }
    EXPECT_EQ(model.blind_drafts, c.settings.prompt.size() == 1 ? 1 : 0);
    if (foresight.window > 0) {
      const int64_t prompt = std::ssize(c.settings.prompt);
      const int64_t prompt_rows = std::min(prompt, foresight.window - 1);
      EXPECT_LE(target.feature_rows_computed, prompt_rows + target.rows_computed - prompt);
    }
  }
}

TEST(CycleLaws, PromptFeaturesOnlyForTheLastWindow) {
  ScriptedTarget target(10, test::pseudo_random_rule(3, 4.0));
  RunSettings settings;
  settings.prompt.assign(500, 2);
  settings.max_tokens = 1;
  DFlashDrafter drafter(
      std::make_unique<ScriptedDraftModel>(target, ForesightSettings{3, 4.0, 0.0, 8, 24}), 0.0F
  );
  run(target, drafter, settings);
  EXPECT_EQ(target.feature_rows_computed, 23);
}

// Steps without drafts leave no hole in the drafter's context; a stretch whose features were never
// observed costs acceptance only.
TEST(CycleLaws, DraftingCanPauseAndResume) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Case c = random_case(seed);
    c.settings.sampling = {};
    c.settings.max_tokens = 60;
    c.settings.stop_tokens.clear();
    c.settings.context_length = 1000;
    const RunResult plain = run_plain(c);
    for (const bool feed : {true, false}) {
      ScriptedTarget target = c.target();
      auto owned = std::make_unique<ScriptedDraftModel>(target, c.foresight(0.0));
      const ScriptedDraftModel& model = *owned;
      DFlashDrafter drafter(std::move(owned), 0.0F);
      const auto sequence = test::new_sequence(target, drafter, c.settings);
      Cycle cycle(target, drafter);
      std::vector<Sequence*> batch = {sequence.get()};
      std::mt19937 random(static_cast<uint32_t>(seed));
      while (sequence->finish == FinishReason::kNone) {
        sequence->draft_max = random() % 2 == 0 ? 7 : 0;
        sequence->feed_drafter = feed || sequence->draft_max > 0;
        const SequenceStep step = cycle.step(batch).sequences.front();
        if (feed) {
          EXPECT_EQ(step.accepted, step.drafted);
        }
      }
      EXPECT_EQ(reply_of(*sequence), plain.reply);
      EXPECT_TRUE(feed ? model.blind_drafts <= 1 : true);
    }
  }
}

// Several sequences in one cycle, each finishing when it does, equal each alone.
TEST(CycleLaws, CompanyChangesNothing) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    const Case shared = random_case(seed);
    std::vector<Case> cases;
    for (uint64_t i = 0; i < 5; ++i) {
      Case c = random_case(seed * 100 + i);
      c.seed = shared.seed;
      c.width = shared.width;
      c.rows_limit = shared.rows_limit;
      c.vocabulary = shared.vocabulary;
      for (TokenId& token : c.settings.prompt) {
        token = static_cast<TokenId>(token % c.vocabulary);
      }
      c.settings.sampling.logit_bias.clear();
      c.settings.stop_tokens.clear();
      c.settings.draft_max = static_cast<int>(i * 2 % 8);
      c.settings.rule = i == 3 ? VerifyRule::kRatio : VerifyRule::kCompare;
      cases.push_back(c);
    }
    ScriptedTarget target = shared.target();
    DFlashDrafter drafter(
        std::make_unique<ScriptedDraftModel>(target, shared.foresight(2.0)), 0.0F
    );
    std::vector<RunResult> alone;
    std::vector<std::unique_ptr<Sequence>> sequences;
    std::vector<Sequence*> batch;
    for (const Case& c : cases) {
      alone.push_back(run(target, drafter, c.settings));
      sequences.push_back(test::new_sequence(target, drafter, c.settings));
      batch.push_back(sequences.back().get());
    }
    Cycle cycle(target, drafter);
    while (!batch.empty()) {
      cycle.step(batch);
      std::erase_if(batch, [](const Sequence* s) { return s->finish != FinishReason::kNone; });
    }
    for (size_t i = 0; i < cases.size(); ++i) {
      EXPECT_EQ(reply_of(*sequences[i]), alone[i].reply) << i;
      EXPECT_EQ(sequences[i]->finish, alone[i].finish) << i;
    }
  }
}

// An end token at every offset of the text, hence at every offset of a block, for every end token.
TEST(CycleLaws, EndTokenCutsExactly) {
  const std::vector<TokenId> ends = {7, 8, 9};
  for (int64_t at = 1; at <= 20; ++at) {
    for (const TokenId end : ends) {
      // Counts up modulo 7, the end token after `at` tokens of reply.
      const test::LogitRule rule = [&](std::span<const TokenId> prefix, std::span<float> logits) {
        const auto reply = std::ssize(prefix) - 2;
        std::ranges::fill(logits, 0.0F);
        logits[static_cast<size_t>(reply == at ? end : reply % 7)] = 5.0F;
      };
      RunSettings settings;
      settings.prompt = {0, 0};
      settings.stop_tokens = ends;
      ScriptedTarget target(10, rule);
      NoDrafter none;
      const RunResult plain = run(target, none, settings);
      EXPECT_EQ(std::ssize(plain.reply), at + 1);
      EXPECT_EQ(plain.reply.back(), end);
      EXPECT_EQ(plain.finish, FinishReason::kStopToken);
      ScriptedDrafter oracle(Script::kOracle, 10);
      std::vector<TokenId> beyond = whole_text(settings, plain);
      beyond.insert(beyond.end(), 10, 3);  // it would go on after the end
      oracle.add_reference(beyond);
      target.rows_computed = 0;
      const RunResult drafted = run(target, oracle, settings);
      EXPECT_EQ(drafted, plain);
      EXPECT_LE(target.rows_computed, 2 + at + 1);  // nothing behind the drafted end was verified
    }
  }
}

TEST(CycleLaws, TokenLimitAndContextEndAreExact) {
  for (int64_t limit = 1; limit <= 25; ++limit) {
    Case c = random_case(static_cast<uint64_t>(limit));
    c.settings.stop_tokens.clear();
    for (const bool by_context : {false, true}) {
      c.settings.max_tokens = by_context ? 1000 : limit;
      c.settings.context_length = by_context ? std::ssize(c.settings.prompt) + limit : 1000;
      const RunResult plain = run_plain(c);
      ScriptedTarget target = c.target();
      const auto oracle = scripted(Script::kOracle, c, plain);
      const RunResult drafted = run(target, *oracle, c.settings);
      EXPECT_EQ(drafted, plain);
      EXPECT_EQ(std::ssize(drafted.reply), limit);
      EXPECT_EQ(drafted.finish, by_context ? FinishReason::kContext : FinishReason::kLength);
    }
  }
}

// Presence penalties so strong that no token may come twice: within one block too.
TEST(CycleLaws, PenaltiesSeeTheRowsBefore) {
  ScriptedTarget target(30, [](std::span<const TokenId>, std::span<float> logits) {
    for (size_t t = 0; t < logits.size(); ++t) {
      logits[t] = -static_cast<float>(t) / 100.0F;
    }
  });
  RunSettings settings;
  settings.prompt = {5};
  settings.sampling.presence_penalty = 10.0F;
  settings.max_tokens = 30;
  ScriptedDrafter oracle(Script::kOracle, 30);
  std::vector<TokenId> all = {5};
  for (TokenId t = 0; t < 30; ++t) {
    all.push_back(t);
  }
  oracle.add_reference(all);
  const RunResult result = run(target, oracle, settings);
  EXPECT_EQ(result.reply, std::vector<TokenId>(all.begin() + 1, all.end()));
  EXPECT_EQ(result.steps[1].accepted, 7);
}

// Cutting the reply short and continuing from what was kept gives what an uncut run gives: whatever
// was computed beyond the cut left no trace.
TEST(CycleLaws, DiscardedTokensLeaveNoTrace) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Case c = random_case(seed);
    c.settings.stop_tokens.clear();
    c.settings.context_length = 1000;
    c.settings.max_tokens = 40;
    c.settings.sampling.penalty_scope = PenaltyScope::kReply;
    const RunResult plain = run_plain(c);
    for (int64_t cut = 1; cut < 20; cut += 3) {
      ScriptedTarget target = c.target();
      DFlashDrafter drafter(std::make_unique<ScriptedDraftModel>(target, c.foresight(1.0)), 0.0F);
      const auto sequence = test::new_sequence(target, drafter, c.settings);
      Cycle cycle(target, drafter);
      std::vector<Sequence*> batch = {sequence.get()};
      sequence->max_tokens = cut;
      while (sequence->finish == FinishReason::kNone) {
        cycle.step(batch);
      }
      ASSERT_EQ(sequence->reply_length(), cut);
      sequence->finish = FinishReason::kNone;
      sequence->max_tokens = c.settings.max_tokens;
      while (sequence->finish == FinishReason::kNone) {
        cycle.step(batch);
      }
      EXPECT_EQ(reply_of(*sequence), plain.reply);
    }
  }
}

TEST(CycleLaws, CancellationLeavesAConsistentSequence) {
  Case c = random_case(2);
  c.settings.stop_tokens.clear();
  c.settings.context_length = 1000;
  c.settings.max_tokens = 40;
  const RunResult plain = run_plain(c);
  ScriptedTarget target = c.target();
  DFlashDrafter drafter(std::make_unique<ScriptedDraftModel>(target, c.foresight(0.0)), 0.0F);
  const auto sequence = test::new_sequence(target, drafter, c.settings);
  std::atomic<bool> cancelled = false;
  sequence->cancelled = &cancelled;
  Cycle cycle(target, drafter);
  std::vector<Sequence*> batch = {sequence.get()};
  while (sequence->reply_length() < 5) {
    cycle.step(batch);
  }
  cancelled = true;
  const std::vector<TokenId> before = sequence->tokens;
  cycle.step(batch);
  EXPECT_EQ(sequence->finish, FinishReason::kCancelled);
  EXPECT_EQ(sequence->tokens, before);
  EXPECT_EQ(sequence->unprocessed(), 1);
  cancelled = false;
  sequence->finish = FinishReason::kNone;
  while (sequence->finish == FinishReason::kNone) {
    cycle.step(batch);
  }
  EXPECT_EQ(reply_of(*sequence), plain.reply);
}

TEST(CycleLaws, PromptChunksDoNotMatter) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Case c = random_case(seed);
    const RunResult plain = run_plain(c);
    for (const int64_t rows : {2, 3, 8, 64}) {
      c.rows_limit = rows;
      ScriptedTarget target = c.target();
      DFlashDrafter drafter(std::make_unique<ScriptedDraftModel>(target, c.foresight(1.0)), 0.0F);
      EXPECT_EQ(run(target, drafter, c.settings), plain);
    }
  }
}

TEST(Cycle, RefusesTapsThatTheTargetLacks) {
  class FarTap : public NoDrafter {
   public:
    std::span<const int> taps() const override { return taps_; }

   private:
    std::vector<int> taps_ = {6};
  };
  ScriptedTarget target(5, test::pseudo_random_rule(1, 1.0));
  FarTap drafter;
  EXPECT_THROW(Cycle(target, drafter), Error);
}

TEST(DrafterList, MakesEveryKindAndSaysWhatIsMissing) {
  ScriptedTarget target(9, test::pseudo_random_rule(1, 3.0));
  for (const DrafterKind& kind : drafter_kinds()) {
    if (kind.needs_draft_model || kind.needs_reference) {
      EXPECT_THROW(new_drafter(kind.name, target, {}), Error) << kind.name;
    }
    DrafterInputs inputs;
    inputs.draft_model = std::make_unique<ScriptedDraftModel>(target, ForesightSettings{1, 3.0});
    inputs.references = {{1, 2, 3}};
    EXPECT_EQ(new_drafter(kind.name, target, std::move(inputs))->name(), kind.name);
  }
  EXPECT_THROW(new_drafter("nobody", target, {}), Error);
}

}  // namespace
}  // namespace octet
