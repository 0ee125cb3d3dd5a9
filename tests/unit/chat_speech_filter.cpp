// Speech between stop strings and tool calls.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/chat/speech_filter.h"

namespace octet::test {
namespace {

TEST(SpeechFilter, HoldsBackTheBeginningOfAStopStringAndDropsOne) {
  SpeechFilter filter({"END"});
  EXPECT_EQ(filter.push("one E"), "one ");
  EXPECT_EQ(filter.push("N"), "");
  EXPECT_EQ(filter.push("T"), "ENT");
  EXPECT_EQ(filter.push(" ENDs"), " ");
  EXPECT_EQ(filter.push("more"), "");
  EXPECT_EQ(filter.finish(), "");
}

TEST(SpeechFilter, GivesOutWhatWasHeldWhenNothingFollows) {
  SpeechFilter filter({"END"});
  EXPECT_EQ(filter.push("the EN"), "the ");
  EXPECT_EQ(filter.finish(), "EN");
}

TEST(SpeechFilter, AStopStringDoesNotReachAcrossACall) {
  SpeechFilter filter({"END"});
  EXPECT_EQ(filter.push("before EN"), "before ");
  EXPECT_EQ(filter.finish(), "EN");  // a call comes
  EXPECT_EQ(filter.push("D behind"), "D behind");
  EXPECT_EQ(filter.push(" END"), " ");
  EXPECT_EQ(filter.finish(), "");
}

TEST(SpeechFilter, PassesEverythingWithoutStopStrings) {
  SpeechFilter filter({});
  EXPECT_EQ(filter.push("END"), "END");
  EXPECT_EQ(filter.finish(), "");
}

}  // namespace
}  // namespace octet::test
