// Every rule of the safetensors reader, each with a file that breaks exactly it, and what the user
// is told.

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/formats/safetensors_reader.h"
#include "support/error_message.h"
#include "support/format_bytes.h"
#include "support/temporary_directory.h"

namespace octet {
namespace {

using test::Bytes;
using test::safetensors_bytes;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string message_for(std::string_view file) {
  return test::error_message([&] { parse_safetensors(test::bytes_of(file), "bad.safetensors"); });
}

/// One F32 tensor "t" of shape [2] with the given members in place of the right ones.
std::string with_entry(std::string_view entry, size_t data_bytes = 8) {
  return safetensors_bytes("{\"t\":" + std::string(entry) + "}", std::string(data_bytes, '\0'));
}

TEST(SafetensorsLimits, AcceptsGoodFiles) {
  EXPECT_EQ(message_for(safetensors_bytes("{}", "")), "");
  EXPECT_EQ(message_for(safetensors_bytes("{}      ", "")), "") << "padding with spaces";
  EXPECT_EQ(message_for(with_entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})")), "");
  EXPECT_EQ(message_for(with_entry(R"({"dtype":"F32","shape":[0,5],"data_offsets":[0,0]})", 0)), "")
      << "no bytes";
  EXPECT_EQ(message_for(with_entry(R"({"dtype":"F32","shape":[],"data_offsets":[0,4]})", 4)), "")
      << "a scalar";
}

TEST(SafetensorsLimits, HeaderLength) {
  EXPECT_THAT(message_for("1234567"), StartsWith("bad.safetensors: 7 bytes are too few"));
  EXPECT_THAT(
      message_for(Bytes().put(uint64_t{100'000'001}).text()),
      HasSubstr("at most 100000000 are allowed")
  );
  EXPECT_THAT(message_for(Bytes().put(~uint64_t{0}).text()), HasSubstr("at most 100000000"));
  EXPECT_THAT(
      message_for(Bytes().put(uint64_t{50}).raw("{}").text()),
      HasSubstr("announces 50 bytes, but only 2 follow")
  );
}

TEST(SafetensorsLimits, HeaderIsOneJsonObject) {
  EXPECT_THAT(message_for(safetensors_bytes(" {}", "")), HasSubstr("one JSON object"));
  EXPECT_THAT(message_for(safetensors_bytes("", "")), HasSubstr("one JSON object"));
  EXPECT_THAT(message_for(safetensors_bytes("{}\n", "")), HasSubstr("nothing but spaces after it"));
  EXPECT_THAT(message_for(safetensors_bytes("{} {}", "")), HasSubstr("not valid JSON"));
  EXPECT_THAT(message_for(safetensors_bytes("{\"a\"}", "")), HasSubstr("not valid JSON"));
  EXPECT_THAT(message_for(safetensors_bytes("{\"\xFF\":1}", "")), HasSubstr("not valid JSON"));
  EXPECT_THAT(message_for(with_entry("{\"dtype\":[[[[1]]]]}")), HasSubstr("not valid JSON"))
      << "nesting";
}

TEST(SafetensorsLimits, Names) {
  const std::string entry = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_THAT(
      message_for(safetensors_bytes("{\"a\":" + entry + ",\"a\":" + entry + "}", "1234")),
      HasSubstr("the name 'a' is there twice")
  );
  EXPECT_THAT(
      message_for(safetensors_bytes("{\"\":" + entry + "}", "1234")), HasSubstr("has 0 bytes")
  );
  EXPECT_THAT(
      message_for(safetensors_bytes("{\"" + std::string(1025, 'n') + "\":" + entry + "}", "1234")),
      HasSubstr("has 1025 bytes; expected 1 to 1024")
  );
}

TEST(SafetensorsLimits, Entries) {
  EXPECT_THAT(message_for(with_entry("7")), HasSubstr("tensor 't': expected an object"));
  EXPECT_THAT(
      message_for(with_entry(R"({"shape":[2],"data_offsets":[0,8]})")),
      HasSubstr("tensor 't': 'dtype' is missing")
  );
  EXPECT_THAT(
      message_for(with_entry(R"({"dtype":7,"shape":[2],"data_offsets":[0,8]})")),
      HasSubstr("'dtype' must be a string")
  );
  EXPECT_THAT(
      message_for(with_entry(R"({"dtype":"F7","shape":[2],"data_offsets":[0,8]})")),
      HasSubstr("tensor 't': unknown dtype 'F7'")
  );
  EXPECT_THAT(
      message_for(with_entry(R"({"dtype":"F32","data_offsets":[0,8]})")),
      HasSubstr("'shape' is missing")
  );
  EXPECT_THAT(
      message_for(with_entry(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})")),
      HasSubstr("'shape' must hold integers")
  );
  EXPECT_THAT(
      message_for(with_entry(R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})")),
      HasSubstr("'shape' must hold integers")
  );
  EXPECT_THAT(
      message_for(with_entry(R"({"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,8]})"
      )),
      HasSubstr("'shape' must hold integers from 0 to 2^63-1")
  );
  EXPECT_THAT(
      message_for(with_entry(R"({"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]})")
      ),
      HasSubstr("'shape' has 9 entries; at most 8")
  );
  EXPECT_THAT(
      message_for(with_entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})")),
      HasSubstr("'data_offsets' has 1 entries")
  );
}

TEST(SafetensorsLimits, SizesNeverWrap) {
  EXPECT_THAT(
      message_for(
          with_entry(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]})", 0)
      ),
      HasSubstr("tensor 't': the size of shape [4294967296, 4294967296] overflows")
  );
  EXPECT_THAT(
      message_for(
          with_entry(R"({"dtype":"F64","shape":[1152921504606846976],"data_offsets":[0,0]})", 0)
      ),
      HasSubstr("overflows")
  );
  EXPECT_THAT(
      message_for(with_entry(R"({"dtype":"F4","shape":[3],"data_offsets":[0,1]})", 1)),
      HasSubstr("not whole bytes")
  );
}

TEST(SafetensorsLimits, Ranges) {
  EXPECT_THAT(
      message_for(with_entry(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})")),
      HasSubstr("tensor 't': data_offsets [8, 0] do not lie in the 8 bytes")
  );
  EXPECT_THAT(
      message_for(with_entry(R"({"dtype":"F32","shape":[4],"data_offsets":[0,16]})")),
      AllOf(HasSubstr("tensor 't': data_offsets [0, 16]"), HasSubstr("truncated"))
  );
  EXPECT_THAT(
      message_for(with_entry(R"({"dtype":"F32","shape":[1],"data_offsets":[0,8]})")),
      HasSubstr("tensor 't': 8 bytes at data_offsets, but dtype F32 and shape [1] need 4")
  );
}

TEST(SafetensorsLimits, TheDataAreTiledExactly) {
  const auto two = [](int first, int second) {
    const std::string header = "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[" +
                               std::to_string(first) + "," + std::to_string(first + 4) +
                               "]},\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[" +
                               std::to_string(second) + "," + std::to_string(second + 4) + "]}}";
    return safetensors_bytes(header, std::string(12, '\0'));
  };
  EXPECT_THAT(
      message_for(two(0, 2)), HasSubstr("tensor 'b': data begins at 2, expected 4: tensors overlap")
  );
  EXPECT_THAT(
      message_for(two(0, 8)),
      HasSubstr("tensor 'b': data begins at 8, expected 4: there is a gap before it")
  );
  EXPECT_THAT(message_for(two(1, 5)), HasSubstr("tensor 'a': data begins at 1, expected 0"));
  EXPECT_THAT(message_for(two(0, 4)), HasSubstr("the tensors end at byte 8 of 12 bytes"));
}

TEST(SafetensorsLimits, Metadata) {
  EXPECT_THAT(
      message_for(safetensors_bytes(R"({"__metadata__":3})", "")),
      HasSubstr("'__metadata__' must be an object")
  );
  EXPECT_THAT(
      message_for(safetensors_bytes(R"({"__metadata__":{"k":3}})", "")),
      HasSubstr("entry 'k' must be a string")
  );
}

TEST(SafetensorsLimits, TruncationAnywhereIsAnError) {
  const std::string whole = with_entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})");
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(message_for(whole.substr(0, length)), "") << length;
  }
}

class SafetensorsIndex : public ::testing::Test {
 protected:
  SafetensorsIndex() {
    directory_.write(
        "one", safetensors_bytes(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "1")
    );
    directory_.write(
        "two", safetensors_bytes(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "2")
    );
  }

  std::string message_for_index(std::string_view json) {
    const std::string path = directory_.write("index.json", json);
    return test::error_message([&] { read_safetensors_index(path); });
  }

  test::TemporaryDirectory directory_;
};

TEST_F(SafetensorsIndex, JoinsShards) {
  const std::string path =
      directory_.write("index.json", R"({"weight_map":{"a":"one","b":"two"}})");
  const std::vector<SafetensorsFile> files = read_safetensors_index(path);
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].tensors[0].name, "a");
  EXPECT_EQ(files[1].tensors[0].name, "b");
}

TEST_F(SafetensorsIndex, RefusesNamesThatLeaveTheDirectory) {
  for (const char* name :
       {"../one", "/etc/passwd", "sub/one", "..", ".", "", "a\\\\b", "one\\u0000.x"}) {
    const std::string json = std::string(R"({"weight_map":{"a":")") + name + "\"}}";
    EXPECT_THAT(
        message_for_index(json),
        AllOf(HasSubstr("tensor 'a'"), HasSubstr("expected a plain file name"))
    ) << name;
  }
}

TEST_F(SafetensorsIndex, IndexAndShardsMustAgree) {
  EXPECT_THAT(
      message_for_index(R"({"weight_map":{"a":"one","b":"one"}})"),
      HasSubstr("tensor 'b' is not in shard 'one', where the index places it")
  );
  EXPECT_THAT(
      message_for_index(R"({"weight_map":{"x":"one","b":"two"}})"),
      HasSubstr("tensor 'a' is in shard 'one', but the index does not list it")
  );
  EXPECT_THAT(
      message_for_index(R"({"weight_map":{"a":"two","b":"two"}})"),
      HasSubstr("tensor 'a' is not in shard 'two'")
  );
  EXPECT_THAT(
      message_for_index(R"({"weight_map":{"a":"one","b":"missing"}})"), HasSubstr("missing")
  );
  EXPECT_THAT(
      message_for_index(R"({"weight_map":{}})"), HasSubstr("'weight_map' is missing or empty")
  );
  EXPECT_THAT(
      message_for_index(R"({"weight_map":{"a":7}})"), HasSubstr("entry 'a' must be a file name")
  );
  EXPECT_THAT(message_for_index(R"([])"), HasSubstr("expected a JSON object, found an array"));
  EXPECT_THAT(
      message_for_index(R"({"weight_map":{"a":"one","a":"two"}})"),
      HasSubstr("the name 'a' is there twice")
  );
}

}  // namespace
}  // namespace octet
