// Constraints on a reply, compiled: JSON, JSON Schema, tool calls in the model's own syntax, a
// choice, a regular expression, an EBNF grammar. Not for following a text (matcher.h). Invariants:
// a compiled grammar is immutable and shared; every text it begins can be finished, so a mask is
// never empty; control tokens are allowed only where the grammar has them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "octet/text/tokenizer.h"

namespace octet {

/// Where the reply stands, with respect to thinking, when the grammar begins. Thoughts are free;
/// what follows them is constrained, from the exact token on.
enum class ThoughtStart {
  kNone,     // no thought: the constraint holds from the first token on
  kMayOpen,  // the reply may open with one thought
  kOpen,     // the prompt ends inside a thought
};

enum class ToolUse {
  kAllowed,   // speech and calls in any number
  kRequired,  // at least one call, speech before it
};

struct ToolSignature {
  std::string name;
  const nlohmann::ordered_json* parameters =
      nullptr;                  // JSON Schema of an object; null: no arguments
  bool free_arguments = false;  // any arguments, whatever the schema says (not a strict tool)
};

struct ToolRules {
  std::vector<ToolSignature> tools;
  ToolUse use = ToolUse::kAllowed;
  bool parallel = true;       // more than one call in a reply
  bool speech_before = true;  // text may precede the first call
  /// JSON Schema of what is said: that, with calls behind it or not, or calls alone. Null: speech
  /// is free.
  const nlohmann::ordered_json* speech = nullptr;
};

/// What goes beyond is an Error(kResourceExhausted) at compile time.
struct GrammarLimits {
  int64_t max_source_bytes = int64_t{256} * 1024;
  int64_t max_nodes = 400'000;  // of the automaton
  int max_nesting = 64;         // of schemas, groups and references
  int max_depth = 256;          // of recursion in a text
};

class Grammar;

/// Compiles for one vocabulary, whose token table it builds once. Remembers what it compiled last.
/// All functions are safe to call from several threads, and throw Error: kMalformed for a source
/// that is none, kUnsupported naming the keyword or construct, kResourceExhausted naming the limit.
class GrammarCompiler {
 public:
  explicit GrammarCompiler(std::shared_ptr<const Tokenizer> tokenizer, GrammarLimits limits = {});
  ~GrammarCompiler();

  /// Any JSON object.
  std::shared_ptr<const Grammar> json_object(ThoughtStart thought);
  std::shared_ptr<const Grammar> json_schema(
      const nlohmann::ordered_json& schema, ThoughtStart thought
  );
  std::shared_ptr<const Grammar> tool_calls(const ToolRules& rules, ThoughtStart thought);
  /// Exactly one of the strings.
  std::shared_ptr<const Grammar> choice(std::span<const std::string> strings, ThoughtStart thought);
  /// A text that the expression matches as a whole.
  std::shared_ptr<const Grammar> regex(std::string_view expression, ThoughtStart thought);
  /// GBNF: rules "name ::= ...", of which "root" is the text.
  std::shared_ptr<const Grammar> ebnf(std::string_view source, ThoughtStart thought);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octet
