// How long masks take on the real vocabulary. Prints figures and asserts none, because machines
// differ: run it with OCTET_TEST_TIMING=1.
#include <cstdlib>
#include <ctime>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "octet/grammar/grammar.h"
#include "octet/grammar/matcher.h"
#include "support/tokenizer_fixtures.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

/// Processor time of this process, in microseconds: also right on a busy machine.
double microseconds_of(const auto& body) {
  const std::clock_t start = std::clock();
  body();
  return static_cast<double>(std::clock() - start) * 1e6 / CLOCKS_PER_SEC;
}

struct Cost {
  double sum = 0.0;
  double most = 0.0;
  int count = 0;
  void add(double value) {
    sum += value;
    most = std::max(most, value);
    ++count;
  }
};

/// Follows a text twice and prints what masks cost: all new, then all remembered.
void measure(
    const std::string& name, const std::shared_ptr<const Grammar>& grammar, const std::string& text
) {
  const auto tokenizer = test::gemma4_tokenizer();
  const std::vector<TokenId> tokens = tokenizer->encode(text, SpecialTokens::kParse);
  std::vector<uint64_t> words((static_cast<size_t>(tokenizer->vocabulary_size()) + 63) / 64);
  std::vector<float> logits(static_cast<size_t>(tokenizer->vocabulary_size()));
  for (const char* run : {"new", "known"}) {
    Matcher matcher(grammar);
    Cost mask;
    Cost apply;
    Cost accept;
    for (const TokenId token : tokens) {
      mask.add(microseconds_of([&] { matcher.fill_mask(words); }));
      apply.add(microseconds_of([&] { matcher.apply(logits); }));
      accept.add(microseconds_of([&] { ASSERT_TRUE(matcher.accept(token)) << text; }));
    }
    fmt::print(
        "{:>12} {:>5}: {:3} masks, mean {:8.1f} us, most {:8.1f} us; apply {:6.1f} us; accept "
        "{:5.1f} us\n",
        name,
        run,
        mask.count,
        mask.sum / mask.count,
        mask.most,
        apply.sum / apply.count,
        accept.sum / accept.count
    );
  }
}

TEST(GrammarTiming, PrintsMicrosecondsAMask) {
  if (std::getenv("OCTET_TEST_TIMING") == nullptr) {  // NOLINT(concurrency-mt-unsafe)
    GTEST_SKIP() << "set OCTET_TEST_TIMING=1 to measure";
  }
  if (test::read_text(test::kGemma3Json).empty()) {
    GTEST_SKIP() << "the real vocabulary is not installed: " << test::kGemma3Json << " is missing";
  }
  std::unique_ptr<GrammarCompiler> compiler;
  const double build = microseconds_of([&] {
    compiler = std::make_unique<GrammarCompiler>(test::gemma4_tokenizer());
  });
  fmt::print(
      "table of {} tokens: {:.0f} ms\n", test::gemma4_tokenizer()->vocabulary_size(), build / 1000
  );
  const std::string object =
      R"({"name": "Ada Lovelace", "tags": ["first", "programmer"], "born": 1815, "notes": {"a": null, "b": [true, 1.5]}})";
  measure("json object", compiler->json_object(ThoughtStart::kNone), object);
  const Json schema = Json::parse(
      R"({"type":"object","properties":{"name":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}},
    "born":{"type":"integer"},"notes":{"type":"object","additionalProperties":true}},"required":["name","born"]})"
  );
  std::shared_ptr<const Grammar> compiled;
  const double compile =
      microseconds_of([&] { compiled = compiler->json_schema(schema, ThoughtStart::kNone); });
  fmt::print("compiling the schema: {:.0f} us\n", compile);
  measure("schema", compiled, object);
  const Json limited = Json::parse(R"({"type":"string","maxLength":100})");
  measure(
      "max length",
      compiler->json_schema(limited, ThoughtStart::kNone),
      "\"" + std::string(10, 'a') + " some words in a string\""
  );
  ToolRules rules;
  rules.tools = {{.name = "send", .parameters = &schema}};
  measure(
      "tools",
      compiler->tool_calls(rules, ThoughtStart::kMayOpen),
      "<|channel>thought\nA name.<channel|>One moment, I will send "
      "it.<|tool_call>call:send{born:1815,name:<|\"|>Ada Lovelace<|\"|>}<tool_call|>"
  );
  measure(
      "regex",
      compiler->regex("[a-z ]+[0-9]{4}", ThoughtStart::kNone),
      "some lower case words and 1234"
  );
}

}  // namespace
}  // namespace octet
