// What grammars say yes and no to, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "octet/grammar/grammar.h"
#include "octet/grammar/matcher.h"
#include "octet/grammar/tool_signature.h"
#include "support/error_message.h"
#include "support/tokenizer_fixtures.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

GrammarCompiler& compiler() {
  static GrammarCompiler shared(test::tiny_tokenizer());
  return shared;
}

/// "yes": the text is complete; "open": a start of one; "no" otherwise. Control tokens are parsed.
std::string judged(const std::shared_ptr<const Grammar>& grammar, std::string_view text) {
  Matcher matcher(grammar);
  for (const TokenId token : test::tiny_tokenizer()->encode(text, SpecialTokens::kParse)) {
    if (!matcher.accept(token)) {
      return "no";
    }
  }
  return matcher.can_end() ? "yes" : "open";
}

std::string schema(const char* source, std::string_view text) {
  return judged(compiler().json_schema(Json::parse(source), ThoughtStart::kNone), text);
}
std::string regex(const char* source, std::string_view text) {
  return judged(compiler().regex(source, ThoughtStart::kNone), text);
}
std::string ebnf(const char* source, std::string_view text) {
  return judged(compiler().ebnf(source, ThoughtStart::kNone), text);
}

TEST(Grammar, ObjectsOfASchema) {
  const char* person =
      R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},"tag":{"type":"string"}},"required":["age"]})";
  EXPECT_EQ(schema(person, R"({"name":"A","age":1})"), "yes");
  EXPECT_EQ(schema(person, R"({"age":1,"tag":"x"})"), "yes");
  EXPECT_EQ(schema(person, "{\n  \"name\": \"A\\n\\u00e9\",\n  \"age\": -5\n}"), "yes");
  EXPECT_EQ(schema(person, R"({"age":1)"), "open");
  EXPECT_EQ(schema(person, R"({"name":"A"})"), "no");
  EXPECT_EQ(schema(person, R"({"age":1.5})"), "no");
  EXPECT_EQ(schema(person, R"({"age":1,"other":1})"), "no");
  EXPECT_EQ(schema(person, R"({"age":1,})"), "no");
  EXPECT_EQ(
      schema(
          R"({"type":"object","additionalProperties":{"type":"null"},"properties":{"ab":{}}})",
          R"({"ab":[1],"a":null,"abc":null})"
      ),
      "yes"
  );
  EXPECT_EQ(
      schema(
          R"({"type":"object","additionalProperties":{"type":"null"},"properties":{"ab":{"type":"null"}}})",
          R"({"x":null,"ab":null})"
      ),
      "no"
  );
  EXPECT_EQ(schema("{}", R"({"a":[1,2.5e3,{"b":null}],"c":true})"), "yes");
  EXPECT_EQ(judged(compiler().json_object(ThoughtStart::kNone), R"({"a":[{}]})"), "yes");
  EXPECT_EQ(judged(compiler().json_object(ThoughtStart::kNone), "[1]"), "no");
}

TEST(Grammar, ValuesOfASchema) {
  EXPECT_EQ(schema(R"({"enum":["red",1,null,{"a":[true]}]})", R"("red")"), "yes");
  EXPECT_EQ(schema(R"({"enum":["red",1,null,{"a":[true]}]})", R"({"a":[true]})"), "yes");
  EXPECT_EQ(schema(R"({"enum":["red"]})", R"("re")"), "no");
  EXPECT_EQ(
      schema(R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":2})", "[1,2]"),
      "yes"
  );
  EXPECT_EQ(
      schema(R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":2})", "[]"), "no"
  );
  EXPECT_EQ(
      schema(R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":2})", "[1,2,3]"),
      "no"
  );
  EXPECT_EQ(
      schema(
          R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false})",
          R"([1,"a"])"
      ),
      "yes"
  );
  EXPECT_EQ(
      schema(
          R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false})",
          R"(["a"])"
      ),
      "no"
  );
  EXPECT_EQ(
      schema(R"({"type":"string","minLength":2,"maxLength":3})", "\"\xC3\xA9\xF0\x9F\xA6\x9C\""),
      "yes"
  );
  EXPECT_EQ(schema(R"({"type":"string","minLength":2,"maxLength":3})", R"("abcd")"), "no");
  EXPECT_EQ(schema(R"({"type":"string","pattern":"^a+\"$"})", R"("aa\"")"), "yes");
  EXPECT_EQ(schema(R"({"type":"string","pattern":"b"})", R"("abc")"), "yes");
  EXPECT_EQ(schema(R"({"type":"string","format":"date"})", R"("2026-02-30")"), "no");
  EXPECT_EQ(schema(R"({"type":["integer","null"]})", "null"), "yes");
  EXPECT_EQ(schema(R"({"anyOf":[{"type":"integer"},{"type":"string"}]})", "\"x\""), "yes");
  EXPECT_EQ(
      schema(
          R"({"allOf":[{"properties":{"a":{"type":"integer"}}},{"properties":{"b":{"type":"null"}},"required":["b"]}]})",
          R"({"a":1,"b":null})"
      ),
      "yes"
  );
  EXPECT_EQ(
      schema(
          R"({"$defs":{"n":{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}},"required":["next"]}},"$ref":"#/$defs/n"})",
          R"({"next":{"next":null}})"
      ),
      "yes"
  );
}

TEST(Grammar, RangesOfNumbers) {
  for (const auto& [low, high] : std::vector<std::pair<int, int>>{
           {0, 9}, {-3, 3}, {17, 205}, {-120, -99}, {5, 5}, {-1, 1000}}) {
    const Json range = {{"type", "integer"}, {"minimum", low}, {"maximum", high}};
    const auto grammar = compiler().json_schema(range, ThoughtStart::kNone);
    for (int n = low - 30; n < high + 30; ++n) {
      EXPECT_EQ(judged(grammar, std::to_string(n)) == "yes", low <= n && n <= high) << n << range;
    }
  }
  const Json open = {{"type", "number"}, {"exclusiveMinimum", -2}, {"maximum", 3}};
  const auto grammar = compiler().json_schema(open, ThoughtStart::kNone);
  for (const char* yes : {"-1", "-1.99", "0", "0.5", "-0.5", "2.999", "3"}) {
    EXPECT_EQ(judged(grammar, yes), "yes") << yes;
  }
  for (const char* no : {"-2", "-2.5", "3.5", "3.01", "-2.0", "4"}) {
    EXPECT_NE(judged(grammar, no), "yes") << no;
  }
}

TEST(Grammar, RefusesByName) {
  const auto refused = [](const char* source) {
    return test::error_message([&] {
      compiler().json_schema(Json::parse(source), ThoughtStart::kNone);
    });
  };
  EXPECT_EQ(
      refused(R"({"type":"object","patternProperties":{}})"),
      "#: the schema keyword 'patternProperties' is not supported"
  );
  EXPECT_EQ(
      refused(R"({"properties":{"a":{"not":{}}}})"),
      "#/properties/a: the schema keyword 'not' is not supported"
  );
  EXPECT_EQ(
      refused(R"({"type":"array","uniqueItems":true})"),
      "#: the schema keyword 'uniqueItems' is not supported"
  );
  EXPECT_EQ(refused(R"({"tpye":"string"})"), "#: the schema keyword 'tpye' is not supported");
  EXPECT_EQ(refused(R"({"type":"strnig"})"), "#/type names no type of JSON: 'strnig'");
  EXPECT_EQ(refused(R"({"type":"number","multipleOf":0.5})"), "#/multipleOf is not supported");
  EXPECT_EQ(refused(R"({"type":"string","format":"iri"})"), "#/format \"iri\" is not supported");
  EXPECT_EQ(
      refused(R"({"$ref":"other.json"})"),
      "#/$ref must name a place in this schema, such as #/$defs/name, that exists"
  );
  EXPECT_EQ(
      refused(R"({"oneOf":[{"type":"integer"},{"type":"number"}]})"),
      "#/oneOf: the alternatives 0 and 1 are not told apart by type or constants; use anyOf"
  );
  EXPECT_EQ(
      refused(R"({"type":"string","pattern":"(?<=x)*"})"),
      "#/pattern: regular expression, byte 4: look-ahead and look-behind are not supported"
  );
  EXPECT_EQ(
      refused(R"({"type":"string","pattern":"\\p{L}"})"),
      "#/pattern: regular expression, byte 2: Unicode properties are not supported"
  );
  EXPECT_EQ(
      refused(R"({"$defs":{"a":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"})"),
      "no text can ever match the rule '#/$defs/a'"
  );
  EXPECT_EQ(
      refused(R"({"type":"object","properties":{"a":false},"required":["a"]})"),
      "no text can ever match the rule 'the reply'"
  );
  std::string deep = "{}";
  for (int i = 0; i < 100; ++i) {
    deep.insert(0, R"({"type":"array","items":)");
    deep += "}";
  }
  EXPECT_NE(refused(deep.c_str()).find("nested more than 64 levels"), std::string::npos);
  EXPECT_NE(
      refused(R"({"type":"string","maxLength":99999999})").find("more than 400000 nodes"),
      std::string::npos
  );
}

TEST(Grammar, Regexes) {
  EXPECT_EQ(regex("[a-c]+(x|yy)?\\d{2,3}", "abc12"), "yes");
  EXPECT_EQ(regex("[a-c]+(x|yy)?\\d{2,3}", "ayy1234"), "no");
  EXPECT_EQ(
      regex(
          "^a.b$",
          "a\xC3\xA9"
          "b"
      ),
      "yes"
  );
  EXPECT_EQ(regex("a|b|", ""), "yes");
  EXPECT_EQ(regex("[^a-z]", "q"), "no");
  const auto refused = [](const char* source) {
    return test::error_message([&] { compiler().regex(source, ThoughtStart::kNone); });
  };
  EXPECT_EQ(refused("(a"), "regular expression, byte 2: this group is never closed");
  EXPECT_EQ(refused("*a"), "regular expression, byte 0: there is nothing to repeat");
  EXPECT_EQ(refused("(a)\\1"), "regular expression, byte 5: back references are not supported");
  EXPECT_EQ(refused("a{3,1}"), "regular expression, byte 5: the counts are in the wrong order");
  EXPECT_NE(refused(std::string(60'000, '(').c_str()).find("nested more than"), std::string::npos);
}

TEST(Grammar, Ebnf) {
  const char* sums = R"ebnf(root ::= sum  # a comment
    sum ::= product ("+" product)*
    product ::= [0-9]{1,3} | "(" sum ")"
  )ebnf";
  EXPECT_EQ(ebnf(sums, "1+(22+3)"), "yes");
  EXPECT_EQ(ebnf(sums, "1+("), "open");
  EXPECT_EQ(ebnf(sums, "1++"), "no");
  const auto refused = [](const std::string& source) {
    return test::error_message([&] { compiler().ebnf(source, ThoughtStart::kNone); });
  };
  EXPECT_EQ(refused("rout::="), "grammar: there is no rule 'root'");
  EXPECT_EQ(refused("root ::= other"), "grammar: the rule 'other' is not defined");
  EXPECT_EQ(refused("root ::= \"a"), "grammar, line 1: this string is never closed");
  EXPECT_EQ(
      refused("root ::= root \"a\" | \"b\""),
      "the rule 'root' is left-recursive: it calls itself before it reads anything"
  );
  EXPECT_EQ(refused("root ::= \"a\" root"), "no text can ever match the rule 'root'");
  EXPECT_NE(
      refused("root ::= " + std::string(60'000, '(')).find("nested more than"), std::string::npos
  );
  // Recursion without end is cut at a depth from which every text can still be finished.
  EXPECT_EQ(
      ebnf(
          "root ::= \"(\" root \")\" | \"x\"", std::string(100, '(') + "x" + std::string(100, ')')
      ),
      "yes"
  );
  EXPECT_EQ(ebnf("root ::= \"(\" root \")\" | \"x\"", std::string(2000, '(')), "no");
}

TEST(Grammar, ControlTokensOnlyWhereTheGrammarHasThem) {
  EXPECT_EQ(ebnf("root ::= \"<|turn>\"", "<|turn>"), "no");
  const std::vector<std::string> strings = {"<|tool_call>", "yes"};
  EXPECT_EQ(judged(compiler().choice(strings, ThoughtStart::kNone), "<|tool_call>"), "no");
  EXPECT_EQ(judged(compiler().choice(strings, ThoughtStart::kNone), "yes"), "yes");
}

TEST(Grammar, ThoughtsAreFree) {
  const std::vector<std::string> strings = {"yes", "no"};
  const auto may = compiler().choice(strings, ThoughtStart::kMayOpen);
  EXPECT_EQ(judged(may, "no"), "yes");
  EXPECT_EQ(judged(may, "<|channel>thought\nAny {text}.\n<channel|>yes"), "yes");
  EXPECT_EQ(judged(may, "<|channel>thought\nAny<channel|>maybe"), "no");
  EXPECT_EQ(judged(may, "<|channel>thought\nAny"), "open");
  const auto open = compiler().choice(strings, ThoughtStart::kOpen);
  EXPECT_EQ(judged(open, "Any<channel|>no"), "yes");
  EXPECT_EQ(judged(open, "no"), "open");
}

TEST(Grammar, ToolCalls) {
  const Json parameters = Json::parse(
      R"({"type":"object","properties":{"to":{"type":"string","description":"a \"quoted\" {brace}\n"},
    "Amount":{"type":"integer","minimum":1},"tags":{"type":"array","items":{"enum":["x","y"]}}},"required":["to","Amount"]})"
  );
  ToolRules rules;
  rules.tools = {{.name = "send", .parameters = &parameters}, {.name = "now"}};
  const auto judge = [&](std::string_view text) {
    return judged(compiler().tool_calls(rules, ThoughtStart::kNone), text);
  };
  EXPECT_EQ(judge("Just {text}."), "yes");
  EXPECT_EQ(
      judge("One moment.<|tool_call>call:send{Amount:12,tags:[<|\"|>x<|\"|>],to:<|\"|>any "
            "\"text\"}<|\"|>}<tool_call|><|tool_call>call:now{}<tool_call|>"),
      "yes"
  );
  EXPECT_EQ(judge("<|tool_call>call:send{Amount:0"), "no");
  EXPECT_EQ(judge("<|tool_call>call:send{to"), "no");
  EXPECT_EQ(judge("<|tool_call>call:other{"), "no");
  EXPECT_EQ(judge("<|tool_call>call:now{}<tool_call|>more"), "no");
  rules.parallel = false;
  EXPECT_EQ(judge("<|tool_call>call:now{}<tool_call|><|tool_call>"), "no");
  rules.use = ToolUse::kRequired;
  EXPECT_EQ(judge("Text."), "open");
  rules.speech_before = false;
  EXPECT_EQ(judge("Text."), "no");
  EXPECT_EQ(judge("<|tool_call>call:now{}<tool_call|>"), "yes");
  rules.tools[0].free_arguments = true;
  EXPECT_EQ(judge("<|tool_call>call:send{any:[1,{x:null}]}<tool_call|>"), "yes");
  EXPECT_EQ(judge("<|tool_call>call:now{any"), "no");  // that one is still held to its schema
}

TEST(Grammar, SignaturesComeFromOpenAisForm) {
  const Json strict = Json::parse(
      R"({"type":"function","function":{"name":"a","strict":true,"parameters":{"type":"object"}}})"
  );
  const ToolSignature signature = tool_signature(strict);
  EXPECT_EQ(signature.name, "a");
  EXPECT_EQ(signature.parameters, &strict["function"]["parameters"]);
  EXPECT_FALSE(signature.free_arguments);
  EXPECT_TRUE(is_strict_tool(strict));
  for (const char* text :
       {R"({"function":{"name":"b"}})",
        R"({"function":{"name":"b","strict":false}})",
        R"({"function":{"name":"b","strict":"true"}})",
        R"({"function":{"name":"b","parameters":null}})"}) {
    const Json tool = Json::parse(text);
    EXPECT_TRUE(tool_signature(tool).free_arguments) << text;
    EXPECT_EQ(tool_signature(tool).parameters, nullptr) << text;
  }
}

// Each place behind a character reaches all that follow: the work of one state grows with the
// square of the repetitions, and everybody's next step waits for it.
TEST(Grammar, TooAmbiguousExpressionsAreGivenUpAtOnce) {
  const auto tokenizer = test::tiny_tokenizer();
  const std::vector<TokenId> text = tokenizer->encode("a", SpecialTokens::kPlain);
  Matcher modest(compiler().regex("(.?){100}", ThoughtStart::kNone));
  EXPECT_TRUE(modest.accept(text[0]));
  Matcher wild(compiler().regex("(.?){4000}", ThoughtStart::kNone));
  EXPECT_THAT(test::error_message([&] { wild.accept(text[0]); }), testing::HasSubstr("ambiguous"));
}

TEST(Grammar, ForcedRuns) {
  const auto tokenizer = test::tiny_tokenizer();
  const Json parameters = Json::parse(
      R"({"type":"object","properties":{"destination":{"type":"string"}},"required":["destination"]})"
  );
  ToolRules rules;
  rules.tools = {{.name = "travel", .parameters = &parameters}};
  rules.use = ToolUse::kRequired;
  rules.speech_before = false;
  Matcher matcher(compiler().tool_calls(rules, ThoughtStart::kNone));
  const std::vector<TokenId> forced = matcher.forced_tokens(100);
  EXPECT_EQ(tokenizer->decode(forced), "<|tool_call>call:travel{destination:<|\"|>");
  EXPECT_EQ(matcher.forced_tokens(1).size(), 1U);
  for (const TokenId token : forced) {
    ASSERT_TRUE(matcher.accept(token));
  }
  EXPECT_TRUE(matcher.forced_tokens(8).empty());
}

}  // namespace
}  // namespace octet
