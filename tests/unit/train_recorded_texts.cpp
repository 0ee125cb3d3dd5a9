// Files of recorded features as texts: what is in them, and every kind of file that cannot teach,
// refused in a sentence with cause, place and remedy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_message.h"
#include "support/recorded_texts.h"
#include "support/temporary_directory.h"
#include "support/training_fixture.h"

namespace octet::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace t = octet::train;

const char* const kRemedy = "record it again with `octet generate-data --features`";

class RecordedTexts : public testing::Test {
 protected:
  RecordedTexts() {
    header_.hidden = fixture_.target->shape().hidden;
    header_.taps = {0, 2, 3};
    header_.target_digest = checkpoint_digest(*fixture_.target_checkpoint);
    rules_ = rules_for(*fixture_.target);
  }

  std::string write(const std::string& name, const std::vector<t::TrainingText>& texts) const {
    return directory_.write(name, blank_recording(header_, texts));
  }
  t::RecordedTexts read(const std::vector<std::string>& files) const {
    return t::read_recorded_texts(files, *fixture_.target_checkpoint, rules_);
  }
  /// One sentence that says all of this.
  void expect_refused(const std::string& file, const std::vector<std::string>& says) const {
    const std::string what = error_message([&] { read({file}); });
    EXPECT_THAT(what, Not(HasSubstr("\n")));
    EXPECT_THAT(what, HasSubstr(file));
    for (const std::string& part : says) {
      EXPECT_THAT(what, HasSubstr(part));
    }
  }

  const t::TrainingText good_ = {{5, 6, 7, 8}, 2};
  TrainingFixture fixture_;
  TemporaryDirectory directory_;
  FeatureHeader header_;
  t::TextRules rules_;
};

TEST_F(RecordedTexts, AreTheRecordsOfAllFilesInOrder) {
  const t::TrainingText other = {{9, 10, 11, 12, 13}, 1};
  const auto found = read({write("a", {good_, other}), write("b", {other})});
  ASSERT_EQ(found.texts.size(), 3U);
  ASSERT_EQ(found.places.size(), 3U);
  EXPECT_EQ(found.texts[0].tokens, good_.tokens);
  EXPECT_EQ(found.texts[0].first_learned, 2);
  EXPECT_EQ(found.texts[2].tokens, other.tokens);
  EXPECT_EQ(found.places[1].file, 0U);
  EXPECT_EQ(found.places[1].record, 1);
  EXPECT_EQ(found.places[2].file, 1U);
  EXPECT_EQ(found.places[2].record, 0);
  const std::vector<int> layers = {2, 0};
  EXPECT_EQ(std::ssize(found.features(2, layers)), 4 * 2 * header_.hidden);
  EXPECT_TRUE(read({}).texts.empty());
}

TEST_F(RecordedTexts, DigestTellsRecordingsApart) {
  const uint64_t digest = read({write("a", {good_})}).digest();
  EXPECT_EQ(read({write("same", {good_})}).digest(), digest);
  EXPECT_NE(read({write("more", {good_, good_})}).digest(), digest);
  EXPECT_NE(read({write("a", {good_}), write("b", {good_})}).digest(), digest);
  header_.type = FeatureType::kF32;
  EXPECT_NE(read({write("type", {good_})}).digest(), digest);
  header_.type = FeatureType::kBF16;
  header_.settings_digest = 1;
  EXPECT_NE(read({write("settings", {good_})}).digest(), digest);
}

TEST_F(RecordedTexts, OfAnotherTargetAreRefused) {
  header_.target_digest ^= 1;
  expect_refused(write("other", {good_}), {"recorded with another target", "random-target"});
  header_.target_digest ^= 1;
  header_.hidden = 16;
  expect_refused(write("narrow", {good_}), {"16 columns a layer", "expected 32"});
}

TEST_F(RecordedTexts, ThatAreNotWholeAreRefused) {
  const std::string whole = blank_recording(header_, std::vector{good_, good_});
  expect_refused(
      directory_.write("cut", std::string_view(whole).substr(0, whole.size() - 30)),
      {"the file ends inside", kRemedy}
  );
  std::string damaged = whole;
  damaged[whole.size() / 2] ^= 1;
  expect_refused(directory_.write("damaged", damaged), {"is damaged", kRemedy});
  expect_refused(
      directory_.write("text", "{\"tokens\": [1, 2, 3]}\n"),
      {"no file of recorded features", kRemedy}
  );
  expect_refused(directory_.file("absent"), {});
  expect_refused(write("none", {}), {"holds no text", "expected one record"});
}

TEST_F(RecordedTexts, ThatTheRulesForbidAreRefusedOrSkippedByNumber) {
  const t::TrainingText strange = {{5, 6, 64, 7}, 1};
  const t::TrainingText brief = {{5, 6, 7}, 2};
  rules_.most_tokens = 5;
  const t::TrainingText large = {{5, 6, 7, 8, 9, 10}, 1};
  expect_refused(write("strange", {good_, strange}), {"record 1: ", "another vocabulary"});
  expect_refused(write("brief", {brief, good_}), {"record 0: ", "1 tokens to learn"});
  expect_refused(write("large", {good_, large}), {"record 1: ", "at most 5 (--length)"});
  rules_.bad = BadLines::kSkip;
  const auto found = read({write("mixed", {brief, good_, strange, large})});
  ASSERT_EQ(found.texts.size(), 1U);
  EXPECT_EQ(found.places[0].record, 1);
  ASSERT_EQ(found.skipped.size(), 3U);
  EXPECT_THAT(found.skipped[1], AllOf(HasSubstr("mixed, record 2: "), HasSubstr("vocabulary")));
  expect_refused(write("brief", {brief}), {"holds no text"});
}

TEST_F(RecordedTexts, WithoutTheTapsOrTheLastLayerTeachNobody) {
  const std::vector<int> taps = {0, 2};
  header_.taps = {0, 3};
  const std::string untapped = write("untapped", {good_});
  EXPECT_THAT(
      error_message([&] { RecordedFixture(fixture_, {untapped}, taps); }),
      AllOf(
          HasSubstr(untapped),
          HasSubstr("layer 2"),
          HasSubstr("of 0, 3"),
          HasSubstr("`octet generate-data --taps`")
      )
  );
  header_.taps = {0, 2};
  const std::string untaught = write("untaught", {good_});
  header_.taps = {0, 2, 3};
  const std::string taught = write("taught", {good_});
  EXPECT_THAT(
      error_message([&] {
        RecordedFixture(fixture_, {taught, untaught}, taps);
      }),
      AllOf(
          HasSubstr(untaught),
          HasSubstr("last layer (3)"),
          HasSubstr("--teacher-states"),
          HasSubstr("--teacher tokens")
      )
  );
  // The text's tokens can teach without it.
  const auto texts = read({untaught});
  t::RecordedSource source(texts, taps, nullptr);
  EXPECT_EQ(source.read(0, {}, at::Tensor()).size(1), 2 * header_.hidden);
}

}  // namespace
}  // namespace octet::test
