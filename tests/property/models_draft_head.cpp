// A stored draft head: what it scores, and which ones are refused.

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/models/dflash/forward.h"
#include "support/error_message.h"
#include "support/model_runs.h"
#include "support/random_models.h"
#include "support/stored_head.h"

namespace octet::test {
namespace {

using testing::HasSubstr;

struct Fixture {
  explicit Fixture(bool own_head, uint64_t seed = 1) {
    GemmaShape target_shape;
    target_shape.hidden = 64;
    target_shape.dtype = DType::kQ8_0;
    target_shape.feed_forward.assign(4, 64);
    target_shape.ple_width = 32;
    target_shape.full_head_dim = 32;
    target_shape.sliding_head_dim = 32;
    DFlashShape shape;
    shape.hidden = target_shape.hidden;
    shape.dtype = DType::kQ8_0;
    shape.feed_forward = 64;
    shape.head_dim = 32;
    shape.own_head = own_head;
    ops = test_ops(1);
    target = load_target(make_gemma(target_shape, seed), *ops, {});
    file = make_dflash(shape, seed + 1);
  }

  const LogicalTensor& whole() const {
    const LogicalTensor* own = file->find("output.weight");
    return own != nullptr ? *own : *target->head_tensor();
  }

  std::unique_ptr<DraftModel> drafter(std::shared_ptr<const Checkpoint> head) const {
    DrafterOptions options;
    options.draft_head = std::move(head);
    return load_drafter(file, *ops, *target, options);
  }

  FloatRows logits(DraftModel& model) const {
    FloatRows features;
    const auto cols = std::ssize(model.shape().taps) * target->shape().hidden;
    for (uint64_t r = 0; r < 20; ++r) {
      features.push_back(random_values(cols, 100 + r, 3.0F));
    }
    const auto cache = model.new_cache(100);
    inject(model, *cache, features);
    return draft(model, *cache, 3);
  }

  std::unique_ptr<Ops> ops;
  std::unique_ptr<TargetModel> target;
  std::shared_ptr<const Checkpoint> file;
};

// Rows copied in the head's own type score their tokens to the bit as the whole head does.
TEST(DraftHead, CopiedRowsScoreAsTheWholeHead) {
  const std::vector<TokenId> tokens = {0, 3, 4, 17, 40, 41, 63};
  for (const bool own_head : {false, true}) {
    SCOPED_TRACE(own_head);
    const Fixture fixture(own_head);
    const auto full = fixture.drafter(nullptr);
    const auto shortened =
        fixture.drafter(stored_head(fixture.whole(), tokens, fixture.whole().dtype));
    ASSERT_EQ(shortened->shape().tokens, tokens);
    ASSERT_EQ(shortened->shape().vocabulary, std::ssize(tokens));
    const FloatRows all = fixture.logits(*full);
    const FloatRows some = fixture.logits(*shortened);
    ASSERT_EQ(some.size(), 7U);  // a row a draft: the anchor needs none
    for (size_t r = 0; r < some.size(); ++r) {
      for (size_t c = 0; c < tokens.size(); ++c) {
        EXPECT_EQ(some[r][c], all[r][static_cast<size_t>(tokens[c])]) << r << " " << c;
      }
    }
    EXPECT_LT(shortened->block_work(0).weight_bytes - full->block_work(0).weight_bytes, 0);
  }
}

TEST(DraftHead, LowerBitCopyOfAllTokensScoresNearly) {
  const Fixture fixture(false);
  const auto full = fixture.drafter(nullptr);
  const auto copy = fixture.drafter(stored_head(fixture.whole(), {}, DType::kQ4_0));
  EXPECT_TRUE(copy->shape().tokens.empty());
  EXPECT_EQ(copy->shape().vocabulary, full->shape().vocabulary);
  const FloatRows exact = fixture.logits(*full);
  const FloatRows near = fixture.logits(*copy);
  double error = 0.0;
  double size = 0.0;
  for (size_t r = 0; r < exact.size(); ++r) {
    for (size_t c = 0; c < exact[r].size(); ++c) {
      error += std::pow(static_cast<double>(exact[r][c] - near[r][c]), 2);
      size += std::pow(static_cast<double>(exact[r][c]), 2);
    }
  }
  EXPECT_GT(error, 0.0);
  EXPECT_LT(error, 0.03 * size);
}

TEST(DraftHead, RefusesWhatDoesNotFitThePair) {
  const Fixture fixture(false);
  const auto refusal = [&](const std::shared_ptr<Checkpoint>& head) {
    return error_message([&] { fixture.drafter(head); });
  };
  const auto good = [&](const std::vector<TokenId>& tokens) {
    return stored_head(fixture.whole(), tokens, DType::kQ8_0);
  };
  EXPECT_EQ(refusal(good({1, 2, 5})), "");

  auto head = good({1, 2, 5});
  head->metadata.set("general.architecture", std::string("gemma4"));
  EXPECT_THAT(refusal(head), HasSubstr("it is not a draft head"));

  head = good({1, 2, 5});
  head->metadata.set(std::string(kDraftHeadVocabularyKey), uint32_t{65});
  EXPECT_THAT(refusal(head), HasSubstr("its vocabulary has 65 tokens, expected 64"));

  for (const std::vector<uint32_t>& ids : {std::vector<uint32_t>{1, 5, 2}, {1, 1, 2}, {1, 2, 64}}) {
    head = good({1, 2, 5});
    head->metadata.set(std::string(kDraftHeadTokensKey), MetadataArray(ids));
    EXPECT_THAT(refusal(head), HasSubstr("expected one in ["));
  }

  head = good({1, 2, 5});
  head->metadata.set(std::string(kDraftHeadTokensKey), MetadataArray(std::vector<uint32_t>{1, 2}));
  EXPECT_THAT(refusal(head), HasSubstr("it has 3 rows for 2 tokens"));

  const Fixture other(false, 77);
  head = stored_head(other.whole(), {1, 2, 5}, DType::kQ8_0);
  EXPECT_THAT(refusal(head), HasSubstr("is not that of the pair's head"));
  EXPECT_THAT(refusal(head), HasSubstr("octet draft-head"));
}

}  // namespace
}  // namespace octet::test
