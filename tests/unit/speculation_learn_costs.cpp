#include <gtest/gtest.h>

#include "octet/speculation/drafters/dflash_drafter.h"
#include "octet/speculation/drafters/no_drafter.h"
#include "octet/speculation/learn_costs.h"
#include "support/scripted_draft_model.h"
#include "support/scripted_target.h"

namespace octet {
namespace {

constexpr double kMinute = 60000.0;

struct ScriptedPair {
  explicit ScriptedPair(int64_t context = 1 << 20, int64_t weight_bytes = 0)
      : target(64, test::pseudo_random_rule(1, 4.0), context),
        drafter(
            std::make_unique<test::ScriptedDraftModel>(
                target, test::ForesightSettings{.target_seed = 1, .window = 100}
            ),
            0.0F
        ),
        cycle(target, drafter) {
    target.weights_bytes = weight_bytes;
  }

  test::ScriptedTarget target;
  DFlashDrafter drafter;
  Cycle cycle;
};

TEST(LearnCosts, KnowsWhatAPolicyAsksFor) {
  ScriptedPair pair;
  learn_costs(pair.cycle, pair.target, pair.drafter, kMinute);
  const StepCosts& costs = pair.cycle.costs();
  for (const int rows : {1, 4, 8}) {
    EXPECT_TRUE(costs.sure_of_forward(rows)) << rows;
  }
  EXPECT_TRUE(costs.knows_draft());
  EXPECT_GT(costs.look_ms(), 0.0);
  BlockPolicy policy(costs, 7);
  EXPECT_EQ(policy.next_drafts(), 7);
  EXPECT_NE(policy.keep(std::vector<TokenId>(7, 1), std::vector<float>(7, 0.0F)), 7)
      << "no block is verified for the sake of its cost";
}

TEST(LearnCosts, KeepsToItsBudget) {
  ScriptedPair idle;
  learn_costs(idle.cycle, idle.target, idle.drafter, 0.0);
  EXPECT_EQ(idle.target.forwards, 0);
  ScriptedPair heavy(1 << 20, int64_t{4} << 30);
  learn_costs(heavy.cycle, heavy.target, heavy.drafter, 20.0);
  EXPECT_EQ(heavy.target.forwards, 0) << "4 GiB are not read in a few milliseconds";
  learn_costs(heavy.cycle, heavy.target, heavy.drafter, kMinute);
  EXPECT_GT(heavy.target.forwards, 0);
}

TEST(LearnCosts, LeavesContextsAlone) {
  for (const int64_t context : {2, 9, 40}) {
    ScriptedPair pair(context);  // the scripted target refuses rows beyond the context
    learn_costs(pair.cycle, pair.target, pair.drafter, kMinute);
    EXPECT_GT(pair.target.forwards, 0) << context;
  }
}

TEST(LearnCosts, HasNothingToLearnWithoutADrafter) {
  ScriptedPair pair;
  NoDrafter none;
  Cycle cycle(pair.target, none);
  learn_costs(cycle, pair.target, none, kMinute);
  EXPECT_EQ(pair.target.forwards, 0);
}

}  // namespace
}  // namespace octet
