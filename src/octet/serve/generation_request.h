// What a client asks for, as the engine takes it: the bodies of chat completions and completions,
// every field read, checked and translated. Not for routes or replies. Invariant: a field is
// honoured, refused by name, or one that cannot change the output; nothing is silently ignored.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "octet/chat/chat_template.h"
#include "octet/engine/engine.h"
#include "octet/grammar/grammar.h"
#include "octet/sampling/sampling_params.h"
#include "octet/serve/request_fields.h"
#include "octet/text/tokenizer.h"

namespace octet::serve {

/// What is served, and what holds for requests that do not say otherwise.
struct ServedModel {
  std::string name;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const ChatTemplate> chat_template;
  std::shared_ptr<GrammarCompiler> grammars;
  SamplingParams sampling;       // of requests that do not say otherwise, but for the seed
  std::optional<uint64_t> seed;  // likewise; not given: a fresh one each
  int64_t vocabulary = 0;
  int64_t context_length = 0;
  int64_t max_tokens = 0;    // of a reply that does not say; 0: to the end of the context
  int max_drafts = 0;        // 0: there is no drafter
  bool adapt_drafts = true;  // of requests that do not say
};

/// Of chat completions, completions, responses, messages.
enum class ReplyForm : uint8_t { kChat, kCompletion, kResponse, kMessage };

struct GenerationRequest {
  ReplyForm form = ReplyForm::kChat;
  std::string request_id;                     // the client's own; empty: none
  std::vector<std::vector<TokenId>> prompts;  // one but for completions of several
  GenerateRequest generate;                   // all but the prompt
  int64_t choices = 1;                        // replies to each prompt
  int priority = 0;
  double first_token_deadline_ms = 0.0;
  double deadline_ms = 0.0;
  double first_clause_deadline_ms = 0.0;
  double speech_deadline_ms = 0.0;
  std::optional<int64_t> thinking_budget;
  bool stream = false;
  bool include_usage = false;
  int64_t clause_characters = 0;  // tell clauses of at least so many; 0: none
  bool include_steps = false;     // what each step did, and the origin of each piece of text
  bool log_probabilities = false;
  /// Under which names thoughts are given: reasoning_content, reasoning, or both.
  std::vector<std::string> reasoning_keys = {"reasoning_content"};
  std::vector<std::string> tool_names;  // that may be called
  bool tools_allowed = false;
  bool parallel_tool_calls = true;
  std::shared_ptr<const Grammar> grammar;  // what the reply must be; null: anything
  std::shared_ptr<const Json> echo;        // fields that the answer repeats; null: none

  /// The engine's request for one choice of one prompt; choice i of all uses seed + i.
  EngineRequest engine_request(size_t prompt, int64_t choice) const;
};

/// Throws ApiError.
GenerationRequest read_chat_request(const Json& body, const ServedModel& model);
GenerationRequest read_completion_request(const Json& body, const ServedModel& model);

/// The prompt of a chat request's messages, tools and template arguments, alone.
struct ChatPrompt {
  std::vector<TokenId> tokens;
  std::string text;
  std::vector<int64_t> marks;    // where other conversations may branch off
  std::optional<bool> thinking;  // not given: the template's own way
  std::optional<int64_t> thinking_budget;
};
ChatPrompt read_chat_prompt(RequestFields& fields, const ServedModel& model);

}  // namespace octet::serve
