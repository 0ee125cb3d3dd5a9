// One conversation end to end over the scripted target: text, stops, limits, continuation,
// statistics, and that nothing of it depends on the drafter.

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/engine/acceptance_replay.h"
#include "octet/engine/calibrate_embedding_scale.h"
#include "octet/engine/generator.h"
#include "octet/speculation/drafters/dflash_drafter.h"
#include "octet/speculation/drafters/no_drafter.h"
#include "octet/speculation/drafters/scripted_drafter.h"
#include "octet/text/load_tokenizer.h"
#include "support/same_acceptance.h"
#include "support/scripted_draft_model.h"
#include "support/scripted_target.h"
#include "support/tokenizer_fixtures.h"

namespace octet {
namespace {

using test::ForesightSettings;
using test::ScriptedDraftModel;
using test::ScriptedTarget;

const Tokenizer& tokenizer() {
  return *test::tiny_tokenizer();
}
int64_t vocabulary() {
  return tokenizer().vocabulary_size();
}

std::vector<TokenId> tokens_of(std::string_view text) {
  return tokenizer().encode(text, SpecialTokens::kPlain);
}

/// A target that writes `text` after `prompt`, then `rest` for ever.
ScriptedTarget writer(const std::vector<TokenId>& prompt, std::vector<TokenId> text, TokenId rest) {
  const auto begin = std::ssize(prompt);
  return {
      vocabulary(),
      [begin,
       rest,
       text = std::move(text)](std::span<const TokenId> prefix, std::span<float> logits) {
        const auto at = std::ssize(prefix) - begin;
        const TokenId next =
            at >= 0 && at < std::ssize(text) ? text[static_cast<size_t>(at)] : rest;
        std::ranges::fill(logits, 0.0F);
        logits[static_cast<size_t>(next)] = 9.0F;
      }};
}

struct Drafters {
  std::vector<std::unique_ptr<Drafter>> all;

  explicit Drafters(const std::vector<TokenId>& reference) {
    all.push_back(std::make_unique<NoDrafter>());
    for (const Script script : {Script::kOracle, Script::kLiar, Script::kHalf}) {
      auto drafter = std::make_unique<ScriptedDrafter>(script, vocabulary());
      drafter->add_reference(reference);
      all.push_back(std::move(drafter));
    }
  }
};

std::vector<TokenId> joined(std::vector<TokenId> a, const std::vector<TokenId>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::string pieces_of(
    Generator& generator, const GenerateRequest& request, GenerateResult& result
) {
  std::string text;
  result = generator.generate(request, [&](const GenerateStep& step) {
    for (const EmittedToken& token : step.tokens) {
      text += token.text;
    }
  });
  return text;
}

// The stop string slides over every offset of the blocks; half of it may sit in one block, half in
// the next, and tokens may hold it together with what comes before or after.
TEST(Generator, StopStringsCutTheTextExactly) {
  const std::vector<TokenId> prompt = tokens_of("hello");
  for (int64_t offset = 0; offset < 18; ++offset) {
    const std::string before(static_cast<size_t>(offset), 'x');
    const std::vector<TokenId> text = tokens_of(before + "END and more words follow here");
    ScriptedTarget target = writer(prompt, text, tokens_of("z").back());
    GenerateRequest request;
    request.prompt = prompt;
    request.stop_strings = {"END", "never"};
    request.max_tokens = 60;
    Drafters drafters(joined(prompt, text));
    std::vector<TokenId> tokens;
    for (const auto& drafter : drafters.all) {
      Generator generator(target, *drafter, tokenizer(), {1000});
      GenerateResult result;
      EXPECT_EQ(pieces_of(generator, request, result), before);
      EXPECT_EQ(result.text, before);
      EXPECT_EQ(result.finish, FinishReason::kStopString);
      tokens = tokens.empty() ? result.tokens : tokens;
      EXPECT_EQ(result.tokens, tokens) << drafter->name();
    }
  }
}

// A target that wants to end at once, and a stop string on both sides of the border: no drafter
// moves the token from which on both count.
TEST(Generator, AReplyIsAsLongAsItMustBe) {
  const std::vector<TokenId> prompt = tokens_of("hello");
  const TokenId end = tokenizer().stop_ids()[0];
  const std::vector<TokenId> text = tokens_of("one END two END three");
  ScriptedTarget wishes_to_end(
      vocabulary(),
      [&](std::span<const TokenId> prefix, std::span<float> logits) {
        const auto at = static_cast<size_t>(std::ssize(prefix) - std::ssize(prompt));
        std::ranges::fill(logits, 0.0F);
        logits[static_cast<size_t>(at < text.size() ? text[at] : tokens_of("z").back())] = 8.0F;
        logits[static_cast<size_t>(end)] = 9.0F;
      }
  );
  Drafters drafters(joined(prompt, joined(text, {end, end})));
  for (int64_t least = 0; least <= std::ssize(text); ++least) {
    std::vector<TokenId> tokens;
    for (const auto& drafter : drafters.all) {
      Generator generator(wishes_to_end, *drafter, tokenizer(), {1000});
      GenerateRequest request;
      request.prompt = prompt;
      request.min_tokens = least;
      request.max_tokens = least + 3;
      const GenerateResult result = generator.generate(request);
      EXPECT_EQ(std::ssize(result.tokens), least + 1) << drafter->name();
      EXPECT_EQ(result.finish, FinishReason::kStopToken);
      EXPECT_EQ(result.tokens.back(), end);
      tokens = tokens.empty() ? result.tokens : tokens;
      EXPECT_EQ(result.tokens, tokens) << drafter->name();
    }
  }
  ScriptedTarget target = writer(prompt, text, tokens_of("z").back());
  for (size_t least = 0; least < text.size(); ++least) {
    std::string before;
    std::string behind;
    for (size_t i = 0; i < text.size(); ++i) {
      (i < least ? before : behind) += tokenizer().bytes(text[i]);
    }
    const bool stops = behind.find("END") != std::string::npos;
    for (const auto& drafter : drafters.all) {
      Generator generator(target, *drafter, tokenizer(), {1000});
      GenerateRequest request;
      request.prompt = prompt;
      request.stop_strings = {"END"};
      request.min_tokens = static_cast<int64_t>(least);
      request.max_tokens = std::ssize(text);
      const GenerateResult result = generator.generate(request);
      EXPECT_EQ(result.text, before + behind.substr(0, behind.find("END"))) << drafter->name();
      EXPECT_EQ(result.finish, stops ? FinishReason::kStopString : FinishReason::kLength);
    }
  }
}

TEST(Generator, TextHeldBackForAStopStringComesAtTheEnd) {
  const std::vector<TokenId> prompt = tokens_of("a");
  const std::vector<TokenId> text = tokens_of("so EN");
  ScriptedTarget target = writer(prompt, text, tokens_of("z").back());
  GenerateRequest request;
  request.prompt = prompt;
  request.stop_strings = {"END"};
  request.max_tokens = std::ssize(text);
  NoDrafter none;
  Generator generator(target, none, tokenizer(), {1000});
  const GenerateResult result = generator.generate(request);
  EXPECT_EQ(result.text, "so EN");
  EXPECT_EQ(result.finish, FinishReason::kLength);
}

// Exactly max_tokens tokens even when the last is a part of a character: U+FFFD once.
TEST(Generator, HalfACharacterAtTheLimit) {
  const std::vector<TokenId> prompt = tokens_of("a");
  const std::vector<TokenId> emoji = tokens_of("\xF0\x9F\xA6\x8E");
  ASSERT_GE(emoji.size(), 2U) << "this vocabulary has the character as one piece";
  ScriptedTarget target = writer(prompt, emoji, tokens_of("z").back());
  GenerateRequest request;
  request.prompt = prompt;
  request.max_tokens = 1;
  NoDrafter none;
  Generator generator(target, none, tokenizer(), {1000});
  const GenerateResult result = generator.generate(request);
  EXPECT_EQ(result.tokens.size(), 1U);
  EXPECT_EQ(result.text, "\xEF\xBF\xBD");
}

TEST(Generator, EndTokensSpellNothingAndAreAllKnown) {
  const std::vector<TokenId> prompt = tokens_of("a");
  ASSERT_FALSE(tokenizer().stop_ids().empty());
  for (const TokenId end : tokenizer().stop_ids()) {
    std::vector<TokenId> text = tokens_of("fine");
    text.push_back(end);
    ScriptedTarget target = writer(prompt, text, tokens_of("z").back());
    ScriptedDrafter oracle(Script::kOracle, vocabulary());
    oracle.add_reference(joined(joined(prompt, text), tokens_of("zzzzzzzz")));
    Generator generator(target, oracle, tokenizer(), {1000});
    GenerateRequest request;
    request.prompt = prompt;
    const GenerateResult result = generator.generate(request);
    EXPECT_EQ(result.text, "fine");
    EXPECT_EQ(result.tokens, text);
    EXPECT_EQ(result.finish, FinishReason::kStopToken);
    request.stop_tokens = std::vector<TokenId>{};  // none: it goes on, and the token is spelled out
    request.max_tokens = 12;
    EXPECT_EQ(generator.generate(request).tokens.size(), 12U);
  }
}

TEST(Generator, MarksTheOriginOfTokens) {
  const std::vector<TokenId> prompt = tokens_of("a prompt of some length");
  const std::vector<TokenId> text = tokens_of("one two three four five six seven eight nine ten");
  ScriptedTarget target = writer(prompt, text, tokens_of("z").back());
  Drafters drafters(joined(prompt, text));
  GenerateRequest request;
  request.prompt = prompt;
  request.max_tokens = std::ssize(text);
  request.adapt_drafts = false;
  const std::array<int, 4> right_rows = {0, 7, 0, 3};
  for (size_t i = 0; i < right_rows.size(); ++i) {
    Generator generator(target, *drafters.all[i], tokenizer(), {1000});
    const GenerateResult result = generator.generate(request);
    EXPECT_EQ(result.text, "one two three four five six seven eight nine ten");
    const int64_t drafted = std::ranges::count(result.drafted, true);
    EXPECT_EQ(drafted, result.acceptance.accepted);
    EXPECT_EQ(drafted > 0, right_rows[i] > 0);
    EXPECT_EQ(result.drafted.front(), false);  // the prompt's own token
    EXPECT_EQ(result.acceptance.published, std::ssize(text) - 1);
    EXPECT_NEAR(result.acceptance.mean_acceptance_length(), 1.0 + right_rows[i], 1e-12);
  }
}

TEST(Generator, RefusesWhatItCannotServeAndStaysUsable) {
  ScriptedTarget target = writer({}, {}, 1);
  NoDrafter none;
  Generator generator(target, none, tokenizer(), {20});
  GenerateRequest good;
  good.prompt = {1, 2, 3};
  good.max_tokens = 2;
  good.stop_tokens = std::vector<TokenId>{};
  const std::vector<TokenId> expected = generator.generate(good).tokens;
  std::vector<GenerateRequest> bad(7, good);
  bad[0].prompt.clear();
  bad[1].prompt.assign(20, 1);
  bad[2].prompt = {static_cast<TokenId>(vocabulary())};
  bad[3].max_tokens = 0;
  bad[4].draft_max = -1;
  bad[5].sampling.temperature = -1.0F;
  bad[6].stop_strings = {""};
  for (const GenerateRequest& request : bad) {
    EXPECT_THROW(generator.generate(request), Error);
    EXPECT_EQ(generator.generate(good).tokens, expected);
  }
  good.prompt.assign(19, 1);
  const GenerateResult last = generator.generate(good);
  EXPECT_EQ(last.tokens.size(), 1U);
  EXPECT_EQ(last.finish, FinishReason::kContext);
  EXPECT_THROW(Generator(target, none, tokenizer(), {int64_t{1} << 40}), Error);
}

TEST(Generator, ACallbackThatThrowsLeavesItUsable) {
  ScriptedTarget target(vocabulary(), test::pseudo_random_rule(1, 4.0));
  NoDrafter none;
  Generator generator(target, none, tokenizer(), {1000});
  GenerateRequest request;
  request.prompt = {1, 2, 3};
  request.stop_tokens = std::vector<TokenId>{};
  request.max_tokens = 9;
  const std::vector<TokenId> expected = generator.generate(request).tokens;
  int steps = 0;
  const auto fail = [&](const GenerateStep&) {
    if (++steps == 4) {
      throw Error(ErrorKind::kIo, "nobody listens");
    }
  };
  EXPECT_THROW(generator.generate(request, fail), Error);
  EXPECT_EQ(generator.generate(request).tokens, expected);
}

/// Turns of one conversation: each prompt is the text so far, sometimes edited or cut, plus
/// something new.
std::vector<TokenId> next_prompt(std::mt19937& random, std::vector<TokenId> text) {
  switch (random() % 5) {
    case 0:
      text.resize(1 + random() % text.size());  // back to an earlier point
      break;
    case 1:
      text[random() % text.size()] = 3;  // edited
      break;
    case 2:
      return text;  // the same again
    default:
      break;
  }
  for (size_t i = 0; i < 1 + random() % 30; ++i) {
    text.push_back(static_cast<TokenId>(static_cast<int64_t>(random()) % vocabulary()));
  }
  return text;
}

// A conversation in one generator equals every turn in a new one, and drafts as well: a drafter
// that foresees the text exactly is never wrong, whatever was reused or cut.
TEST(Generator, ConversationEqualsFreshStarts) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(static_cast<uint32_t>(seed));
    ScriptedTarget target(vocabulary(), test::pseudo_random_rule(seed, 4.0));
    DFlashDrafter drafter(
        std::make_unique<ScriptedDraftModel>(target, ForesightSettings{seed, 4.0, 0.0, 8, 24}), 0.0F
    );
    NoDrafter none;
    Generator conversation(target, drafter, tokenizer(), {4000});
    std::vector<TokenId> text = {1};
    for (int turn = 0; turn < 6; ++turn) {
      GenerateRequest request;
      request.prompt = next_prompt(random, text);
      request.max_tokens = 1 + static_cast<int64_t>(random() % 40);
      request.draft_max = turn == 2 ? 0 : 7;
      request.sampling.seed = seed;
      request.sampling.presence_penalty = 0.0F;
      const GenerateResult result = conversation.generate(request);
      Generator fresh(target, none, tokenizer(), {4000});
      const GenerateResult expected = fresh.generate(request);
      EXPECT_EQ(result.tokens, expected.tokens);
      EXPECT_EQ(result.text, expected.text);
      EXPECT_EQ(result.finish, expected.finish);
      if (turn < 2) {
        EXPECT_EQ(result.acceptance.accepted_rows, result.acceptance.judged_rows);
      }
      text = joined(request.prompt, result.tokens);
    }
  }
}

TEST(Generator, AContinuedPromptCostsOnlyWhatIsNew) {
  ScriptedTarget target(vocabulary(), test::pseudo_random_rule(5, 4.0));
  DFlashDrafter drafter(
      std::make_unique<ScriptedDraftModel>(target, ForesightSettings{5, 4.0}), 0.0F
  );
  Generator generator(target, drafter, tokenizer(), {4000});
  GenerateRequest request;
  request.prompt.assign(300, 7);
  request.stop_tokens = std::vector<TokenId>{};
  request.max_tokens = 30;
  const GenerateResult first = generator.generate(request);
  EXPECT_EQ(first.reused_tokens, 0);
  request.prompt = joined(joined(request.prompt, first.tokens), {4, 5, 6});
  EXPECT_EQ(generator.generate(request).reused_tokens, 329);  // all but the last published token
  generator.reset();
  EXPECT_EQ(generator.generate(request).reused_tokens, 0);
}

TEST(Generator, CancellationKeepsWhatWasPublished) {
  ScriptedTarget target(vocabulary(), test::pseudo_random_rule(5, 4.0));
  NoDrafter none;
  Generator generator(target, none, tokenizer(), {4000});
  std::atomic<bool> cancelled = false;
  GenerateRequest request;
  request.prompt = {1, 2};
  request.stop_tokens = std::vector<TokenId>{};
  request.cancelled = &cancelled;
  int64_t published = 0;
  const GenerateResult result = generator.generate(request, [&](const GenerateStep& step) {
    published += std::ssize(step.tokens);
    cancelled = published >= 6;
  });
  EXPECT_EQ(result.finish, FinishReason::kCancelled);
  EXPECT_EQ(result.tokens.size(), 6U);
}

TEST(AcceptanceStatistics, CountsStepsCutShortAsCensored) {
  AcceptanceStatistics statistics;
  SequenceStep step;
  step.prompt = true;
  step.published = 1;
  statistics.add(step);  // not a step
  step.prompt = false;
  step.drafted = 7;
  step.accepted = 2;
  step.published = 3;
  statistics.add(step);  // rows 1, 2 accepted, row 3 refused
  step.accepted = 7;
  step.published = 2;  // the text ended at the second token: rows 1 and 2 are known, nothing beyond
  statistics.add(step);
  step.drafted = 1;  // a short block, fully accepted: rows beyond were never asked
  step.accepted = 1;
  step.published = 2;
  statistics.add(step);
  EXPECT_EQ(statistics.steps, 3);
  EXPECT_EQ(statistics.published, 7);
  EXPECT_EQ(statistics.accepted, 5);
  EXPECT_EQ(statistics.judged_rows[0], 3);
  EXPECT_EQ(statistics.judged_rows[1], 2);
  EXPECT_EQ(statistics.judged_rows[2], 1);
  EXPECT_EQ(statistics.judged_rows[3], 0);
  EXPECT_DOUBLE_EQ(statistics.joint(1), 1.0);
  EXPECT_DOUBLE_EQ(statistics.joint(2), 0.0);
  EXPECT_DOUBLE_EQ(statistics.mean_acceptance_length(), 3.0);
  EXPECT_DOUBLE_EQ(statistics.tokens_per_step(), 7.0 / 3.0);
  EXPECT_EQ(statistics.rows(), 3);
  EXPECT_EQ(statistics.histogram[2], 2);
  EXPECT_EQ(statistics.histogram[3], 1);
  step.drafted = 4;  // a grammar left no choice: nothing was guessed
  step.forced = 4;
  step.accepted = 4;
  step.published = 5;
  statistics.add(step);
  EXPECT_EQ(statistics.steps, 4);
  EXPECT_EQ(statistics.forced, 4);
  EXPECT_EQ(statistics.accepted, 5);
  EXPECT_DOUBLE_EQ(statistics.mean_acceptance_length(), 3.0);
  EXPECT_EQ(statistics.histogram[1], 1);
}

// The figures of a replay are those of real drafting, count by count.
TEST(AcceptanceReplay, EqualsRealDrafting) {
  ASSERT_TRUE(tokenizer().suppressed_ids().empty());  // a Generator would forbid them, a replay not
  for (uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    ScriptedTarget target(vocabulary(), test::pseudo_random_rule(seed, 4.0));
    DFlashDrafter good(
        std::make_unique<ScriptedDraftModel>(target, ForesightSettings{seed, 4.0, 1.0}), 0.0F
    );
    DFlashDrafter poor(
        std::make_unique<ScriptedDraftModel>(target, ForesightSettings{seed, 4.0, 4.0}), 0.0F
    );
    DraftChoices argmax;
    argmax.rows = {DraftChoice::kArgmax};
    const std::vector<ReplayVariant> variants = {
        {"good", &good, {}, 7},
        {"poor", &poor, {}, 7},
        {"good argmax", &good, argmax, 7},
        {"good short", &good, {}, 3}};
    const std::vector<std::vector<TokenId>> prompts = {{1, 2, 3}, {5}, {4, 4, 4, 4, 9}};
    ReplayRequest request;
    request.prompts = prompts;
    request.sampling.temperature = seed % 3 == 0 ? 0.0F : 0.8F;
    request.sampling.top_k = 5;
    request.sampling.seed = seed;
    request.stop_tokens.assign(tokenizer().stop_ids().begin(), tokenizer().stop_ids().end());
    request.max_tokens = 10 + static_cast<int64_t>(seed);
    const ReplayResult replay = replay_acceptance(target, variants, request);
    for (size_t v = 0; v < variants.size(); ++v) {
      for (size_t i = 0; i < prompts.size(); ++i) {
        GenerateRequest real;
        real.prompt = prompts[i];
        real.adapt_drafts = false;
        real.sampling = request.sampling;
        real.sampling.seed += i;
        real.max_tokens = request.max_tokens;
        real.draft_max = variants[v].draft_max;
        real.draft_choices = variants[v].choices;
        Generator generator(target, *variants[v].drafter, tokenizer(), {1000});
        const GenerateResult result = generator.generate(real);
        SCOPED_TRACE(fmt::format("{} {}", variants[v].name, i));
        EXPECT_EQ(replay.replies[i], result.tokens);
        test::expect_same(replay.variants[v].turns[i], result.acceptance);
      }
    }
  }
}

TEST(Calibration, PicksTheScaleThatIsAcceptedMore) {
  ScriptedTarget target(40, test::pseudo_random_rule(9, 4.0));
  const std::vector<float> scales = {1.0F, 16.0F};
  for (const float right : scales) {
    const auto new_model = [&](float scale) -> std::unique_ptr<DraftModel> {
      return std::make_unique<ScriptedDraftModel>(
          target, ForesightSettings{9, 4.0, scale == right ? 1.0 : 6.0}
      );
    };
    const std::vector<std::vector<TokenId>> prompts = {{1, 2}, {3}, {4, 5}, {6}};
    CalibrationRequest request;
    request.scales = scales;
    request.prompts = prompts;
    request.tokens = 200;
    const EmbeddingScaleCalibration found = calibrate_embedding_scale(target, new_model, request);
    EXPECT_EQ(found.scale, right);
    EXPECT_GE(found.tokens, 200);
    ASSERT_EQ(found.trials.size(), 2U);
  }
  EXPECT_THROW(
      calibrate_embedding_scale(
          target, [](float) -> std::unique_ptr<DraftModel> { return nullptr; }, {}
      ),
      Error
  );
}

}  // namespace
}  // namespace octet
