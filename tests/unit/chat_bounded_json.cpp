// Limits on JSON of callers: what is too much is told before it costs anything.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/chat/bounded_json.h"

namespace octet {
namespace {

using testing::HasSubstr;

std::string fault_of(const std::string& text, const JsonBounds& bounds = {}) {
  const auto fault = json_fault(text, bounds);
  return fault ? fault->what : "";
}

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) {
    result += text;
  }
  return result;
}

TEST(BoundedJson, WhatIsWithinTheBoundsHasNoFault) {
  for (const char* text : {"{}", "[]", "1", "null", "\"a\"", "[1,-2,3.5,true,{\"a\":{}}]"}) {
    EXPECT_EQ(fault_of(text), "") << text;
  }
  EXPECT_EQ(fault_of("[[1]]", {.max_depth = 2, .max_values = 3}), "");
  EXPECT_EQ(fault_of("{\"a\":1,\"b\":2}", {.max_members = 2, .max_comparisons = 1}), "");
}

TEST(BoundedJson, EveryBoundIsHeld) {
  EXPECT_EQ(fault_of("[[1]]", {.max_depth = 1}), "nests deeper than 1 levels");
  EXPECT_EQ(fault_of("[1,2]", {.max_values = 2}), "holds more than 2 values");
  EXPECT_EQ(fault_of("[{},[]]", {.max_values = 2}), "holds more than 2 values");
  EXPECT_THAT(fault_of("{\"a\":1,\"b\":2}", {.max_members = 1}), HasSubstr("more than 1 members"));
  // Three members of one object are three comparisons, in two objects six.
  const std::string three = "{\"a\":1,\"b\":2,\"c\":3}";
  EXPECT_EQ(fault_of("[" + three + "," + three + "]", {.max_comparisons = 6}), "");
  EXPECT_THAT(
      fault_of("[" + three + "," + three + "]", {.max_comparisons = 5}), HasSubstr("many members")
  );
  EXPECT_THAT(fault_of(repeated("[", 100'000)), HasSubstr("deeper than 64"));
}

TEST(BoundedJson, SyntaxIsToldApart) {
  for (const char* text : {"", "{", "nul", "[1,]", "{\"a\"}", "\xFF", "[1e999]", "[] x"}) {
    const auto fault = json_fault(text);
    ASSERT_TRUE(fault.has_value()) << text;
    EXPECT_TRUE(fault->syntax) << text;
    EXPECT_THAT(fault->what, HasSubstr("is not JSON: ")) << text;
  }
  EXPECT_FALSE(json_fault("[[]]", {.max_depth = 1})->syntax);
}

}  // namespace
}  // namespace octet
