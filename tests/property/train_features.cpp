// Laws of training on recorded features: what the target had, read from a file, is what it has when
// it runs, and a drafter that learns from the one is that which learns from the other.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "octet/train/trainer.h"
#include "support/recorded_texts.h"
#include "support/tensor_rows.h"
#include "support/training_fixture.h"

namespace octet::test {
namespace {

using at::Tensor;
namespace t = octet::train;

const std::vector<int> kTaps = {0, 2};            // of the fixture's drafter
const std::vector<int> kRecorded = {3, 0, 1, 2};  // the last layer, the taps and one more

/// A long text beside the short ones: more rows than a pass of the target or of the head takes.
TrainingFixture fixture_with_long_text() {
  TrainingFixture fixture;
  t::TrainingText text;
  text.first_learned = 3;
  RandomNumbers random(29);
  for (int i = 0; i < 600; ++i) {
    text.tokens.push_back(static_cast<TokenId>(random.integer(5, 63)));
  }
  fixture.texts.push_back(std::move(text));
  return fixture;
}

TEST(RecordedSource, GivesTheBitsOfTheEngine) {
  const TemporaryDirectory directory;
  TrainingFixture fixture = fixture_with_long_text();
  const std::string file =
      directory.write("f32", recording_of(fixture, FeatureType::kF32, kRecorded));
  RecordedFixture recorded(fixture, {file}, kTaps);
  t::EngineSource engine(*fixture.target, fixture.texts, kTaps);
  const int64_t vocabulary = fixture.target->shape().vocabulary;
  ASSERT_EQ(recorded.source.texts().size(), fixture.texts.size());
  RandomNumbers random(31);
  for (int64_t text = 0; text < std::ssize(fixture.texts); ++text) {
    SCOPED_TRACE(text);
    const t::TrainingText& expected_text = fixture.texts[static_cast<size_t>(text)];
    const t::TrainingText& found_text = recorded.source.texts()[static_cast<size_t>(text)];
    EXPECT_EQ(found_text.tokens, expected_text.tokens);
    EXPECT_EQ(found_text.first_learned, expected_text.first_learned);
    // In any order, some twice, and some without a token behind them.
    const int64_t count = std::ssize(expected_text.tokens);
    std::vector<int64_t> positions = {count - 1, count - 2, 0, count + 3, count - 2};
    for (int i = 0; i < 300; ++i) {
      positions.push_back(random.integer(0, static_cast<int>(count) - 2));
    }
    const Tensor expected = at::full({std::ssize(positions), vocabulary}, 0.5);
    const Tensor found = expected.clone();
    const Tensor features = engine.read(text, positions, expected);
    EXPECT_TRUE(at::equal(recorded.source.read(text, positions, found), features));
    EXPECT_EQ(features.size(0), count - 1);
    EXPECT_EQ(features.size(1), 2 * fixture.target->shape().hidden);
    EXPECT_TRUE(at::equal(found, expected));
    EXPECT_TRUE(at::equal(found[0], at::full({vocabulary}, 0.5))) << "nothing is behind it";
    EXPECT_TRUE(at::equal(found[3], found[0]));
    EXPECT_TRUE(at::equal(found[1], found[4]));
    EXPECT_FALSE(at::equal(found[1], found[2]));
    // Nobody asks for logits.
    EXPECT_TRUE(at::equal(recorded.source.read(text, {}, Tensor()), features));
    EXPECT_TRUE(at::equal(engine.read(text, {}, Tensor()), features));
  }
}

struct Learned {
  std::vector<double> losses;
  std::vector<Tensor> weights;
};

Learned learned(t::TrainingTask& task, int64_t steps) {
  t::Trainer trainer(task, TrainingFixture::settings(steps), nullptr);
  Learned result;
  while (!trainer.finished()) {
    result.losses.push_back(trainer.step().sums.mean_loss());
  }
  result.weights = copied_values(task.parameters());
  return result;
}

TEST(RecordedTraining, EqualsThatFromTheEngineToTheBit) {
  const TemporaryDirectory directory;
  TrainingFixture fixture;
  const std::string file =
      directory.write("f32", recording_of(fixture, FeatureType::kF32, kRecorded));
  RecordedFixture recorded(fixture, {file}, kTaps);
  for (const t::Teacher teacher : {t::Teacher::kTokens, t::Teacher::kDistribution}) {
    for (const t::Precision precision : {t::Precision::kFull, t::Precision::kBF16}) {
      const auto by_engine = fixture.task(teacher, precision);
      const std::vector<Tensor> initial = copied_values(by_engine->parameters());
      const Learned expected = learned(*by_engine, 6);
      const auto by_records = fixture.task_of(recorded.source, teacher, precision);
      const Learned found = learned(*by_records, 6);
      EXPECT_EQ(found.losses, expected.losses);
      ASSERT_EQ(found.weights.size(), expected.weights.size());
      for (size_t i = 0; i < found.weights.size(); ++i) {
        EXPECT_TRUE(at::equal(found.weights[i], expected.weights[i]))
            << by_engine->parameters().all()[i].name;
        EXPECT_FALSE(at::equal(found.weights[i], initial[i]))
            << by_engine->parameters().all()[i].name << " did not learn";
      }
    }
  }
}

/// Features and teacher rounded to bfloat16: every value is off by 1/256 of itself at most, and the
/// losses, in which that averages out, by much less.
TEST(RecordedTraining, FollowsTheEngineWithFeaturesOfHalfTheBytes) {
  const TemporaryDirectory directory;
  TrainingFixture fixture;
  const std::string file =
      directory.write("bf16", recording_of(fixture, FeatureType::kBF16, kRecorded));
  RecordedFixture recorded(fixture, {file}, kTaps);
  for (const t::Teacher teacher : {t::Teacher::kTokens, t::Teacher::kDistribution}) {
    const auto by_engine = fixture.task(teacher);
    const Learned expected = learned(*by_engine, 6);
    const auto by_records = fixture.task_of(recorded.source, teacher, t::Precision::kFull);
    const Learned found = learned(*by_records, 6);
    EXPECT_NE(found.losses, expected.losses) << "rounding leaves a trace";
    for (size_t i = 0; i < found.losses.size(); ++i) {
      EXPECT_NEAR(found.losses[i], expected.losses[i], 1e-3 * expected.losses[i]) << "step " << i;
    }
  }
}

TEST(RecordedTraining, ReadsTheShardsOfARecordingAsOne) {
  const TemporaryDirectory directory;
  TrainingFixture fixture;
  const std::string whole =
      directory.write("whole", recording_of(fixture, FeatureType::kF32, kRecorded));
  std::vector<t::TrainingText> texts = fixture.texts;
  fixture.texts.assign(texts.begin(), texts.begin() + 2);
  const std::string first =
      directory.write("first", recording_of(fixture, FeatureType::kF32, kRecorded));
  // Other layers, in another order: each file has its own.
  fixture.texts.assign(texts.begin() + 2, texts.end());
  const std::string second =
      directory.write("second", recording_of(fixture, FeatureType::kF32, {2, 0, 3}));
  RecordedFixture one(fixture, {whole}, kTaps);
  RecordedFixture two(fixture, {first, second}, kTaps);
  const auto by_one = fixture.task_of(one.source, t::Teacher::kDistribution, t::Precision::kFull);
  const auto by_two = fixture.task_of(two.source, t::Teacher::kDistribution, t::Precision::kFull);
  EXPECT_EQ(learned(*by_two, 4).losses, learned(*by_one, 4).losses);
  EXPECT_NE(one.texts.digest(), two.texts.digest());
}

}  // namespace
}  // namespace octet::test
