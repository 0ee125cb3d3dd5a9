// Any text as a schema, an expression or a grammar, and a walk through what it allows: a clear
// Error, or masks that are never empty and agree with what is accepted.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "octet/base/check.h"
#include "octet/base/error.h"
#include "octet/grammar/grammar.h"
#include "octet/grammar/matcher.h"
#include "support/tokenizer_fixtures.h"

namespace {

std::shared_ptr<const octet::Grammar> compiled(char kind, std::string_view source) {
  static octet::GrammarCompiler compiler(
      octet::test::tiny_tokenizer(), {.max_source_bytes = 4096, .max_nodes = 5'000}
  );
  const auto thought = octet::ThoughtStart::kNone;
  if (kind % 4 == 0) {
    return compiler.regex(source, thought);
  }
  if (kind % 4 == 1) {
    return compiler.ebnf(source, thought);
  }
  const auto schema = nlohmann::ordered_json::parse(source, nullptr, false);
  if (schema.is_discarded()) {
    return nullptr;
  }
  if (kind % 4 == 2) {
    return compiler.json_schema(schema, thought);
  }
  octet::ToolRules rules;
  rules.tools = {{.name = "f", .parameters = &schema}};
  return compiler.tool_calls(rules, thought);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) {
    return 0;
  }
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try {
    const auto grammar = compiled(input.front(), input.substr(1));
    if (grammar == nullptr) {
      return 0;
    }
    const auto tokenizer = octet::test::tiny_tokenizer();
    octet::Matcher matcher(grammar);
    std::vector<uint64_t> words((static_cast<size_t>(tokenizer->vocabulary_size()) + 63) / 64);
    for (int step = 0; step < 12 && !matcher.ended(); ++step) {
      matcher.fill_mask(words);
      std::vector<octet::TokenId> allowed;
      for (octet::TokenId token = 0; token < tokenizer->vocabulary_size(); ++token) {
        if (((words[static_cast<size_t>(token) / 64] >> (token % 64)) & 1U) != 0) {
          allowed.push_back(token);
        }
      }
      OCTET_CHECK(!allowed.empty());
      const auto choice = static_cast<size_t>(data[static_cast<size_t>(step) % size]) * 31 + step;
      OCTET_CHECK(matcher.accept(allowed[choice % allowed.size()]));
    }
  } catch (const octet::Error&) {  // as it should be
  }
  return 0;
}
