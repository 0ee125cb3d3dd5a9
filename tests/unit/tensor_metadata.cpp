// Typed getters of checkpoint metadata: any integer width is an integer, nothing else is
// reinterpreted, and an error names the key, what was expected and what was found.
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/tensor/metadata.h"

namespace octet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Metadata one(MetadataValue value) {
  Metadata metadata;
  metadata.set("the.key", std::move(value));
  return metadata;
}

void expect_error(ErrorKind kind, const std::string& text, const std::function<void()>& action) {
  try {
    action();
    ADD_FAILURE() << "no error; expected one with: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(text));
    EXPECT_THAT(error.what(), HasSubstr("the.key"));
  }
}

TEST(Metadata, EveryIntegerWidthIsAnInteger) {
  const std::vector<MetadataValue> sevens{
      uint8_t{7},
      int8_t{7},
      uint16_t{7},
      int16_t{7},
      uint32_t{7},
      int32_t{7},
      uint64_t{7},
      int64_t{7}};
  for (const MetadataValue& value : sevens) {
    EXPECT_EQ(one(value).integer("the.key"), 7) << metadata_type_name(value);
    EXPECT_EQ(one(value).number("the.key"), 7.0) << metadata_type_name(value);
  }
  EXPECT_EQ(one(int8_t{-3}).integer("the.key"), -3);
}

TEST(Metadata, AnIntegerThatDoesNotFitIsRefused) {
  const uint64_t largest = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(one(largest).integer("the.key"), std::numeric_limits<int64_t>::max());
  expect_error(ErrorKind::kMalformed, "9223372036854775808 is too large", [&] {
    static_cast<void>(one(largest + 1).integer("the.key"));
  });
  expect_error(ErrorKind::kMalformed, "is too large", [&] {
    static_cast<void>(one(MetadataArray(std::vector{largest + 1})).find_integers("the.key"));
  });
}

TEST(Metadata, NumbersAreFloatsOrIntegers) {
  EXPECT_EQ(one(0.5F).number("the.key"), 0.5);
  EXPECT_EQ(one(1e300).number("the.key"), 1e300);
  expect_error(ErrorKind::kMalformed, "expected a number, found bool", [] {
    static_cast<void>(one(true).number("the.key"));
  });
}

TEST(Metadata, AnotherTypeIsAnErrorAndNeverReinterpreted) {
  expect_error(ErrorKind::kMalformed, "expected an integer, found f32", [] {
    static_cast<void>(one(7.0F).integer("the.key"));
  });
  expect_error(ErrorKind::kMalformed, "expected an integer, found string", [] {
    static_cast<void>(one(std::string("7")).find_integer("the.key"));
  });
  expect_error(ErrorKind::kMalformed, "expected an integer, found array of u32", [] {
    static_cast<void>(one(MetadataArray(std::vector<uint32_t>{7})).integer("the.key"));
  });
  expect_error(ErrorKind::kMalformed, "expected a bool, found u8", [] {
    static_cast<void>(one(uint8_t{1}).boolean("the.key"));
  });
  expect_error(ErrorKind::kMalformed, "expected a string, found i64", [] {
    static_cast<void>(one(int64_t{1}).string("the.key"));
  });
  expect_error(ErrorKind::kMalformed, "expected an array of strings, found string", [] {
    static_cast<void>(one(std::string("x")).find_strings("the.key"));
  });
  expect_error(ErrorKind::kMalformed, "found array of f64", [] {
    static_cast<void>(one(MetadataArray(std::vector<double>{1.0})).find_integers("the.key"));
  });
}

TEST(Metadata, AbsentKeysAreErrorsOnlyWhereRequired) {
  const Metadata empty;
  expect_error(ErrorKind::kNotFound, "is missing", [&] {
    static_cast<void>(empty.integer("the.key"));
  });
  expect_error(ErrorKind::kNotFound, "is missing", [&] {
    static_cast<void>(empty.number("the.key"));
  });
  expect_error(ErrorKind::kNotFound, "is missing", [&] {
    static_cast<void>(empty.boolean("the.key"));
  });
  expect_error(ErrorKind::kNotFound, "is missing", [&] {
    static_cast<void>(empty.string("the.key"));
  });
  expect_error(ErrorKind::kNotFound, "is missing", [&] {
    static_cast<void>(empty.integers_per_layer("the.key", 2));
  });
  EXPECT_FALSE(empty.contains("the.key"));
  EXPECT_EQ(empty.find("the.key"), nullptr);
  EXPECT_EQ(empty.find_integer("the.key"), std::nullopt);
  EXPECT_EQ(empty.find_number("the.key"), std::nullopt);
  EXPECT_EQ(empty.find_boolean("the.key"), std::nullopt);
  EXPECT_EQ(empty.find_string("the.key"), nullptr);
  EXPECT_EQ(empty.find_strings("the.key"), nullptr);
  EXPECT_EQ(empty.find_integers("the.key"), std::nullopt);
}

TEST(Metadata, ArraysOfIntegersAndBools) {
  const Metadata integers = one(MetadataArray(std::vector<int16_t>{-1, 2}));
  EXPECT_THAT(integers.find_integers("the.key").value(), ElementsAre(-1, 2));
  const Metadata flags = one(MetadataArray(std::vector<bool>{true, false}));
  EXPECT_THAT(flags.find_integers("the.key").value(), ElementsAre(1, 0));
  const Metadata words = one(MetadataArray(std::vector<std::string_view>{"a", "b"}));
  EXPECT_THAT(*words.find_strings("the.key"), ElementsAre("a", "b"));
}

TEST(Metadata, OneValueStandsForEveryLayer) {
  EXPECT_THAT(one(uint32_t{9}).integers_per_layer("the.key", 3), ElementsAre(9, 9, 9));
  EXPECT_THAT(one(true).integers_per_layer("the.key", 2), ElementsAre(1, 1));
  const Metadata array = one(MetadataArray(std::vector<int32_t>{4, 5, 6}));
  EXPECT_THAT(array.integers_per_layer("the.key", 3), ElementsAre(4, 5, 6));
  expect_error(ErrorKind::kMalformed, "one per layer (2), found 3", [&] {
    static_cast<void>(array.integers_per_layer("the.key", 2));
  });
  expect_error(ErrorKind::kMalformed, "expected an integer, found f32", [] {
    static_cast<void>(one(1.0F).integers_per_layer("the.key", 2));
  });
}

TEST(Metadata, SettingAgainReplaces) {
  Metadata metadata = one(uint32_t{1});
  metadata.set("the.key", std::string("text"));
  EXPECT_EQ(metadata.string("the.key"), "text");
  EXPECT_EQ(metadata.entries().size(), 1U);
}

TEST(Metadata, TypeNamesAreThoseOfGguf) {
  EXPECT_EQ(metadata_type_name(uint8_t{0}), "u8");
  EXPECT_EQ(metadata_type_name(int64_t{0}), "i64");
  EXPECT_EQ(metadata_type_name(0.0), "f64");
  EXPECT_EQ(metadata_type_name(std::string()), "string");
  EXPECT_EQ(metadata_type_name(MetadataArray(std::vector<int32_t>{})), "array of i32");
  EXPECT_EQ(metadata_type_name(MetadataArray(std::vector<bool>{})), "array of bool");
  EXPECT_EQ(metadata_type_name(MetadataArray(std::vector<std::string_view>{})), "array of string");
}

}  // namespace
}  // namespace octet
