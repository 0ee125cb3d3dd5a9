#include <cmath>
#include <limits>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "octet/base/utf8.h"
#include "octet/cli/json_writer.h"
#include "octet/formats/json_value.h"

namespace octet::cli {
namespace {

JsonValue parsed(const JsonWriter& json) {
  return parse_json(std::as_bytes(std::span(json.text())));
}

TEST(JsonWriter, NestsAndSeparates) {
  JsonWriter json;
  json.begin_object()
      .member("a", 1)
      .key("b")
      .begin_array()
      .value(true)
      .null()
      .value("x")
      .begin_object()
      .end_object();
  json.end_array().member("c", 0.5).end_object();
  EXPECT_EQ(json.text(), R"({"a":1,"b":[true,null,"x",{}],"c":0.5})");
}

TEST(JsonWriter, NumbersThatJsonLacksBecomeNull) {
  JsonWriter json;
  json.begin_array().value(std::nan("")).value(std::numeric_limits<double>::infinity()).end_array();
  EXPECT_EQ(json.text(), "[null,null]");
}

TEST(JsonWriter, AnyBytesComeBackAsTheirRepairedText) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::string bytes;
    for (int i = static_cast<int>(random() % 40); i > 0; --i) {
      bytes += static_cast<char>(random() % 256);
    }
    JsonWriter json;
    json.begin_object().member("text", bytes).end_object();
    EXPECT_EQ(*parsed(json).find_string("text"), replace_invalid_utf8(bytes)) << "round " << round;
  }
}

}  // namespace
}  // namespace octet::cli
