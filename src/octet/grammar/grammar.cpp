#include "octet/grammar/grammar.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/base/error.h"
#include "octet/grammar/compiled_grammar.h"
#include "octet/grammar/ebnf.h"
#include "octet/grammar/json_schema.h"
#include "octet/grammar/regex.h"
#include "octet/grammar/value_syntax.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kRemembered = 32;

TokenId needed(TokenId token, std::string_view name) {
  if (token == kNoToken) {
    throw Error(ErrorKind::kUnsupported, fmt::format("the vocabulary has no token {}", name));
  }
  return token;
}

/// The reply: a thought where it may be, then what is constrained.
PatternPtr reply_pattern(const ChatTokens& tokens, ThoughtStart thought, PatternPtr body) {
  if (thought == ThoughtStart::kNone) {
    return body;
  }
  const PatternPtr rest =
      sequence({any_text(), control_token(needed(tokens.channel_close, "<channel|>"))});
  if (thought == ThoughtStart::kOpen) {
    return sequence({rest, std::move(body)});
  }
  const PatternPtr open = control_token(needed(tokens.channel_open, "<|channel>"));
  return sequence({optional(sequence({open, rest})), std::move(body)});
}

void check_size(std::string_view source, const GrammarLimits& limits) {
  if (static_cast<int64_t>(source.size()) > limits.max_source_bytes) {
    throw Error(
        ErrorKind::kResourceExhausted,
        fmt::format("the grammar has more than {} bytes", limits.max_source_bytes)
    );
  }
}

std::string key_of(std::string_view kind, ThoughtStart thought, std::string_view source) {
  return fmt::format("{}:{}:{}", kind, static_cast<int>(thought), source);
}

}  // namespace

struct GrammarCompiler::State {
  std::shared_ptr<const TokenTable> tokens;
  GrammarLimits limits;
  std::mutex mutex;
  std::deque<std::pair<std::string, std::shared_ptr<const Grammar>>> recent;  // newest first

  /// What was compiled from the same source, or what `pattern` gives. The pattern's rules must be
  /// complete when it returns.
  template <typename MakePattern>
  std::shared_ptr<const Grammar> remembered(
      std::string key, ThoughtStart thought, const MakePattern& pattern
  ) {
    {
      const std::lock_guard lock(mutex);
      const auto found = std::find_if(recent.begin(), recent.end(), [&](const auto& one) {
        return one.first == key;
      });
      if (found != recent.end()) {
        auto entry = std::move(*found);
        recent.erase(found);
        recent.push_front(std::move(entry));
        return recent.front().second;
      }
    }
    PatternRules rules;
    PatternPtr body = pattern(rules);
    rules.root = rules.add(
        reply_pattern(tokens->tokenizer().chat_tokens(), thought, std::move(body)), "the reply"
    );
    auto grammar =
        std::make_shared<const Grammar>(std::make_shared<const Automaton>(rules, limits), tokens);
    const std::lock_guard lock(mutex);
    recent.emplace_front(std::move(key), grammar);
    if (recent.size() > kRemembered) {
      recent.pop_back();
    }
    return grammar;
  }
};

GrammarCompiler::GrammarCompiler(std::shared_ptr<const Tokenizer> tokenizer, GrammarLimits limits)
    : state_(std::make_unique<State>()) {
  state_->tokens = std::make_shared<const TokenTable>(std::move(tokenizer));
  state_->limits = limits;
}
GrammarCompiler::~GrammarCompiler() = default;

std::shared_ptr<const Grammar> GrammarCompiler::json_object(ThoughtStart thought) {
  return state_->remembered(key_of("object", thought, ""), thought, [](PatternRules& rules) {
    return any_object_pattern(*json_syntax(), rules);
  });
}

std::shared_ptr<const Grammar> GrammarCompiler::json_schema(
    const Json& schema, ThoughtStart thought
) {
  const std::string source = schema.dump(-1, ' ', false, Json::error_handler_t::replace);
  check_size(source, state_->limits);
  return state_->remembered(key_of("schema", thought, source), thought, [&](PatternRules& rules) {
    return schema_pattern(schema, "#", *json_syntax(), rules, state_->limits);
  });
}

std::shared_ptr<const Grammar> GrammarCompiler::tool_calls(
    const ToolRules& tools, ThoughtStart thought
) {
  const ChatTokens& tokens = state_->tokens->tokenizer().chat_tokens();
  std::string source =
      fmt::format("{}{}{}", static_cast<int>(tools.use), tools.parallel, tools.speech_before);
  for (const ToolSignature& tool : tools.tools) {
    source += fmt::format(
        "\n{}\n{}\n{}",
        tool.name,
        tool.free_arguments,
        tool.parameters == nullptr
            ? ""
            : tool.parameters->dump(-1, ' ', false, Json::error_handler_t::replace)
    );
  }
  if (tools.speech != nullptr) {
    source += "\n\n" + tools.speech->dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  check_size(source, state_->limits);
  const auto make = [&](PatternRules& rules) {
    const auto syntax = call_syntax(needed(tokens.quote, "<|\"|>"));
    std::vector<PatternPtr> calls;
    for (const ToolSignature& tool : tools.tools) {
      PatternPtr arguments = tool.free_arguments ? any_object_pattern(*syntax, rules)
                             : tool.parameters == nullptr || tool.parameters->is_null()
                                 ? literal("{}")
                                 : schema_pattern(
                                       *tool.parameters,
                                       fmt::format("parameters of {}: #", tool.name),
                                       *syntax,
                                       rules,
                                       state_->limits
                                   );
      calls.push_back(sequence({literal(fmt::format("call:{}", tool.name)), std::move(arguments)}));
    }
    const PatternPtr call = sequence(
        {control_token(needed(tokens.tool_call_open, "<|tool_call>")),
         octet::choice(std::move(calls)),
         control_token(needed(tokens.tool_call_close, "<tool_call|>"))}
    );
    const int64_t most = tools.parallel ? kUnbounded : 1;
    if (tools.speech != nullptr) {
      PatternPtr said = schema_pattern(*tools.speech, "#", *json_syntax(), rules, state_->limits);
      if (tools.tools.empty()) {
        return said;
      }
      return octet::choice(
          {sequence({std::move(said), repeat(call, 0, most)}), repeat(call, 1, most)}
      );
    }
    const int64_t least = tools.use == ToolUse::kRequired ? 1 : 0;
    const bool speech = tools.speech_before || tools.use == ToolUse::kAllowed;
    const PatternPtr all = tools.tools.empty() ? sequence({}) : repeat(call, least, most);
    return speech ? sequence({any_text(), all}) : all;
  };
  if (tools.use == ToolUse::kRequired && tools.tools.empty()) {
    throw Error(ErrorKind::kInvalidArgument, "a tool call is required, and there are no tools");
  }
  return state_->remembered(key_of("tools", thought, source), thought, make);
}

std::shared_ptr<const Grammar> GrammarCompiler::choice(
    std::span<const std::string> strings, ThoughtStart thought
) {
  if (strings.empty()) {
    throw Error(ErrorKind::kInvalidArgument, "a choice needs at least one string");
  }
  const std::string source = Json(std::vector<std::string>(strings.begin(), strings.end()))
                                 .dump(-1, ' ', false, Json::error_handler_t::replace);
  check_size(source, state_->limits);
  return state_
      ->remembered(key_of("choice", thought, source), thought, [&](PatternRules& /*rules*/) {
        std::vector<PatternPtr> options;
        for (const std::string& string : strings) {
          options.push_back(literal(string));
        }
        return octet::choice(std::move(options));
      });
}

std::shared_ptr<const Grammar> GrammarCompiler::regex(
    std::string_view expression, ThoughtStart thought
) {
  check_size(expression, state_->limits);
  return state_
      ->remembered(key_of("regex", thought, expression), thought, [&](PatternRules& /*rules*/) {
        return regex_pattern(expression, RegexMatch::kWhole, characters, state_->limits);
      });
}

std::shared_ptr<const Grammar> GrammarCompiler::ebnf(
    std::string_view source, ThoughtStart thought
) {
  check_size(source, state_->limits);
  return state_->remembered(key_of("ebnf", thought, source), thought, [&](PatternRules& rules) {
    return rule(add_ebnf_rules(rules, source, state_->limits));
  });
}

}  // namespace octet
