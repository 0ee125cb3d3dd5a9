// How a command may depart from the common way of loading a pair.
#include <utility>

#include <gtest/gtest.h>

#include "octet/cli/pair.h"
#include "support/run_program.h"

namespace octet::cli {
namespace {

PairOptions shipped() {
  PairOptions options;
  options.model = test::kPairTarget;
  options.draft_model = test::kPairDrafter;
  options.threads = 1;
  return options;
}

// One load serves: a second one would leave most of the first resident.
TEST(PairNeeds, LeaveTheDraftModelToTheCommand) {
  PairNeeds needs;
  needs.bare_draft_model = true;
  const Pair bare = load_pair(shipped(), std::move(needs));
  ASSERT_NE(bare.bare_draft_model, nullptr);
  EXPECT_EQ(bare.draft_model, bare.bare_draft_model.get());
  EXPECT_EQ(bare.drafter->max_drafts(), 0);
  const Pair usual = load_pair(shipped());
  EXPECT_EQ(usual.bare_draft_model, nullptr);
  EXPECT_NE(usual.draft_model, nullptr);
  EXPECT_EQ(usual.drafter->max_drafts(), 7);
  EXPECT_EQ(memory_figures(bare).drafter_bytes, memory_figures(usual).drafter_bytes);
}

// Every cycle keeps the features of a prompt's chunk for itself, every text its logits.
TEST(PairNeeds, AreInThePlan) {
  const auto forecast = [](int64_t texts, int64_t cycles) {
    PairNeeds needs;
    needs.forecast = true;
    needs.texts = texts;
    needs.cycles = cycles;
    return load_pair(shipped(), std::move(needs)).forecast.scratch_bytes;
  };
  EXPECT_GT(forecast(3, 1), forecast(1, 1));
  EXPECT_GT(forecast(3, 3), forecast(3, 1));
}

}  // namespace
}  // namespace octet::cli
