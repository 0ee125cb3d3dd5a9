// The template engine against Jinja2 itself and against the npm engine @huggingface/jinja, on
// templates that are new with every seed and on the built-in ones.
#include <array>
#include <filesystem>
#include <optional>
#include <random>
#include <regex>

#include "octet/chat/chat_template.h"
#include "support/command_output.h"
#include "support/golden_text.h"
#include "support/jinja_cases.h"
#include "support/missing.h"
#include "support/temporary_directory.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

const std::string kFolder = OCTET_SOURCE_DIR "/tests/differential";
const std::string kScript = kFolder + "/jinja_cases.py";

bool has_jinja2() {
  return !test::output_of("python3 -c 'import jinja2; print(1)' 2>/dev/null").empty();
}

bool has_npm_engine() {
  return !test::output_of("node --version 2>/dev/null").empty() &&
         std::filesystem::exists(kFolder + "/node_modules/@huggingface/jinja");
}

/// Where the npm engine is known to depart from Jinja2, and octet follows Jinja2.
struct Departure {
  const char* pattern;  // of templates that show it
  const char* reason;
};
constexpr std::array<Departure, 6> kDepartures = {{
    {"generation", "takes away the white space around generation tags"},
    {"capitalize", "leaves the letters behind the first as they are"},
    {"accents[^%]*(length|\\[)", "counts and cuts in UTF-16 units, so that 🦙 is two"},
    {" % [23]\\)", "gives a remainder the sign of the dividend"},
    {"(missing|message.tool_calls)\\)? \\| tojson", "writes what is undefined as null"},
    {"is (not )?(iterable|number)",
     "counts no truth value as a number, no mapping and nothing undefined as iterable"},
}};

bool is_known(const std::string& source) {
  return std::ranges::any_of(kDepartures, [&](const Departure& departure) {
    return std::regex_search(source, std::regex(departure.pattern));
  });
}

/// The rows {template, out} or {template, error} of the npm engine for rows {template, variables?}.
std::vector<Json> npm_renders(const std::string& cases, const Json& variables) {
  const test::TemporaryDirectory directory;
  const std::string command = "cd '" + kFolder + "' && node jinja_render.mjs '" +
                              directory.write("variables.json", variables.dump()) + "' <'" +
                              directory.write("cases.jsonl", cases) + "'";
  std::istringstream lines(test::output_of(command));
  std::vector<Json> rows;
  for (std::string line; std::getline(lines, line);) {
    rows.push_back(Json::parse(line));
  }
  return rows;
}

/// The one form of content that templates are given.
void join_parts(Json& content) {
  if (content.is_array()) {
    std::string text;
    for (const Json& part : content) {
      text += part.value("text", "");
    }
    content = text;
  }
}

std::optional<std::string> octet_render(const std::string& source, const Json& variables) {
  try {
    return test::jinja_render(source, test::jinja_variables(variables));
  } catch (const Error&) {
    return std::nullopt;
  }
}

TEST(JinjaEngines, EqualsJinja2OnRandomTemplates) {
  if (!has_jinja2()) {
    OCTET_NEEDS("python3-jinja2");
  }
  const auto variables =
      nlohmann::ordered_json::parse(test::output_of("python3 '" + kScript + "' variables"));
  const auto seed = std::to_string(std::random_device{}() % 1'000'000);
  SCOPED_TRACE("seed " + seed);
  const std::string lines = test::output_of("python3 '" + kScript + "' random " + seed + " 400");
  EXPECT_EQ(test::expect_jinja_cases(lines, variables), 400);
}

TEST(JinjaEngines, EqualsBothEnginesOnWhatChatTemplatesAreMadeOf) {
  if (!has_jinja2() || !has_npm_engine()) {
    OCTET_NEEDS("python3-jinja2, node, or @huggingface/jinja in " << kFolder);
  }
  constexpr int kCount = 300;
  const auto variables = Json::parse(test::output_of("python3 '" + kScript + "' variables"));
  const auto seed = std::to_string(std::random_device{}() % 1'000'000);
  SCOPED_TRACE("seed " + seed);
  const std::string lines =
      test::output_of("python3 '" + kScript + "' chat " + seed + " " + std::to_string(kCount));
  EXPECT_EQ(test::expect_jinja_cases(lines, variables), kCount);
  const std::vector<Json> renders = npm_renders(lines, variables);
  ASSERT_EQ(renders.size(), static_cast<size_t>(kCount));
  int equal = 0;
  for (const Json& row : renders) {
    const auto source = row["template"].get<std::string>();
    const auto out = octet_render(source, variables);
    const bool same = out.has_value() == row.contains("out") && (!out || row["out"] == *out);
    equal += same ? 1 : 0;
    EXPECT_TRUE(same || is_known(source)) << source << "\nnpm: " << row;
  }
  EXPECT_GT(equal, kCount * 3 / 4);
}

/// The inputs of public renders through both engines, with the built-in templates.
TEST(JinjaEngines, EqualsTheNpmEngineOnTheBuiltInTemplates) {
  const std::string path = OCTET_SOURCE_DIR "/tests/golden/text/gemma4_chat_renders.jsonl";
  const std::string inputs = test::read_text(path);
  if (!has_npm_engine()) {
    OCTET_NEEDS("node, or @huggingface/jinja in " << kFolder);
  }
  const ChatTemplate bolt(BuiltinTemplate::kBolt);
  const ChatTemplate gemma(BuiltinTemplate::kGemma4);
  std::string cases;
  std::vector<Json> variables;
  std::istringstream lines(inputs);
  for (std::string line; std::getline(lines, line);) {
    for (const ChatTemplate* chat : {&bolt, &gemma}) {
      Json input = Json::parse(line)["input"];
      input["bos_token"] = "<bos>";
      for (Json& message : input["messages"]) {
        join_parts(message["content"]);
      }
      cases += Json({{"template", chat->source()}, {"variables", input}}).dump() + "\n";
      variables.push_back(std::move(input));
    }
  }
  const std::vector<Json> renders = npm_renders(cases, Json::object());
  ASSERT_EQ(renders.size(), 2U * 114U);
  for (size_t i = 0; i < renders.size(); ++i) {
    const auto out = octet_render(renders[i]["template"], variables[i]);
    ASSERT_TRUE(out.has_value() && renders[i].contains("out"))
        << variables[i] << renders[i]["error"];
    EXPECT_EQ(*out, renders[i]["out"]) << variables[i];
  }
}

}  // namespace
}  // namespace octet
