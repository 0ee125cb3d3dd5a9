// An engine that is told to learn what steps cost knows it before its first request.

#include <memory>

#include <gtest/gtest.h>

#include "octet/engine/engine.h"
#include "octet/speculation/drafters/dflash_drafter.h"
#include "support/scripted_draft_model.h"
#include "support/scripted_target.h"
#include "support/shipped_tokenizer.h"

namespace octet {
namespace {

EngineStatus status_before_any_request(double learn_costs_ms) {
  test::ScriptedTarget target(
      test::shipped_tokenizer()->vocabulary_size(), test::pseudo_random_rule(1, 4.0)
  );
  DFlashDrafter drafter(
      std::make_unique<test::ScriptedDraftModel>(
          target, test::ForesightSettings{.target_seed = 1, .window = 64}
      ),
      0.0F
  );
  EngineOptions options;
  options.context_length = 600;
  options.parallel = 1;
  options.learn_costs_ms = learn_costs_ms;
  const Engine engine(target, drafter, test::shipped_tokenizer(), options);
  return engine.status();
}

TEST(EngineCosts, AreKnownBeforeTheFirstRequest) {
  const EngineStatus learnt = status_before_any_request(60000.0);
  EXPECT_GT(learnt.plain_step_ms, 0.0);
  EXPECT_GT(learnt.block_step_ms, 0.0);
  EXPECT_GT(learnt.draft_ms, 0.0);
  EXPECT_GT(learnt.break_even_length(), 0.0);
  EXPECT_FALSE(learnt.drafted) << "no reply was";
  const EngineStatus unknown = status_before_any_request(0.0);
  EXPECT_EQ(unknown.plain_step_ms, 0.0);
  EXPECT_EQ(unknown.break_even_length(), 0.0);
}

}  // namespace
}  // namespace octet
