// Taps of the last layer give the logits of the forward pass, to the bit, without any layer.
#include <vector>

#include <gtest/gtest.h>

#include "octet/models/gemma4/lent_vocabulary.h"
#include "octet/models/gemma4/output_logits.h"
#include "support/model_runs.h"
#include "support/random_models.h"

namespace octet::test {
namespace {

std::vector<GemmaShape> shapes() {
  std::vector<GemmaShape> all(5);
  all[1].own_head = true;
  all[2].softcap = 0.0;
  all[3].ple_width = 0;
  all[4].dtype = DType::kQ8_0;
  return all;
}

TEST(OutputLogitsLaws, TapsOfTheLastLayerGiveTheLogits) {
  const std::vector<GemmaShape> all_shapes = shapes();
  for (size_t i = 0; i < all_shapes.size(); ++i) {
    SCOPED_TRACE(i);
    const auto checkpoint = make_gemma(all_shapes[i], 40 + i);
    const auto ops = test_ops();
    const auto target = load_target(checkpoint, *ops, {});
    const std::vector<TokenId> tokens = random_tokens(30, target->shape().vocabulary, 41 + i);
    LentVocabulary vocabulary(checkpoint, *ops);
    for (TargetModel* lender : {target.get(), static_cast<TargetModel*>(&vocabulary)}) {
      OutputLogits logits(*checkpoint, *ops, *lender);
      EXPECT_EQ(logits.vocabulary(), target->shape().vocabulary);
      const TargetRun run =
          run_target(*target, tokens, 11, {0, logits.last_layer()}, KvType::kBF16);
      EXPECT_EQ(first_not_finite(run.logits), "");
      // The second tap; one row alone, then all the others.
      const int64_t hidden = target->shape().hidden;
      std::vector<float> states;
      for (const std::vector<float>& row : run.features) {
        states.insert(states.end(), row.begin() + hidden, row.end());
      }
      const auto rows = std::ssize(tokens);
      const Rows all{states.data(), rows, hidden, hidden};
      std::vector<float> storage(static_cast<size_t>(rows * logits.vocabulary()));
      const Rows found{storage.data(), rows, logits.vocabulary(), logits.vocabulary()};
      logits.from_states(all.slice(0, 1), found.slice(0, 1));
      logits.from_states(all.slice(1, rows - 1), found.slice(1, rows - 1));
      EXPECT_EQ(first_difference(copy_of(found), run.logits), "");
    }
  }
}

}  // namespace
}  // namespace octet::test
