#include "octet/serve/generation_request.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/base/error.h"
#include "octet/chat/speech_clauses.h"
#include "octet/engine/grammar_constraint.h"
#include "octet/serve/api_error.h"
#include "octet/serve/chat_translation.h"
#include "octet/serve/prompt_members.h"
#include "octet/serve/reply_constraints.h"
#include "octet/serve/thinking_fields.h"

namespace octet::serve {
namespace {

constexpr int64_t kMostChoices = 16;
constexpr int64_t kMostReplies = 64;  // prompts times choices
constexpr int64_t kMostScores = 20;
constexpr size_t kMostStops = 16;
constexpr double kMostDeadlineMs = 86'400'000.0;

uint64_t fresh_seed() {
  std::random_device device;
  return device();
}

TokenId token_of(const Json& value, const std::string& field, int64_t vocabulary) {
  if (!value.is_number_integer() || value.get<int64_t>() < 0 ||
      value.get<int64_t>() >= vocabulary) {
    throw ApiError(
        field,
        fmt::format("{} holds {}, expected token ids in [0, {})", field, value.dump(), vocabulary)
    );
  }
  return static_cast<TokenId>(value.get<int64_t>());
}

TokenBias read_bias(int64_t id, const Json& bias, int64_t vocabulary) {
  const bool ban = bias.is_boolean() && !bias.get<bool>();
  if (id < 0 || id >= vocabulary || (!bias.is_number() && !ban)) {
    throw ApiError(
        "logit_bias",
        fmt::format(
            "logit_bias expects numbers in [-100, 100] or false for token ids in [0, {})",
            vocabulary
        )
    );
  }
  return {static_cast<TokenId>(id), ban ? kBanBias : bias.get<float>()};
}

/// {"42": -1.5} or [[42, -1.5], [7, false]].
std::vector<TokenBias> read_biases(const Json& value, int64_t vocabulary) {
  std::vector<TokenBias> biases;
  if (value.size() > static_cast<size_t>(kMaxLogitBiases)) {
    throw ApiError(
        "logit_bias", fmt::format("logit_bias has more than {} entries", kMaxLogitBiases)
    );
  }
  if (value.is_object()) {
    for (const auto& [key, bias] : value.items()) {
      int64_t id = -1;
      const auto parsed = std::from_chars(key.data(), key.data() + key.size(), id);
      const bool whole = parsed.ptr == key.data() + key.size();
      biases.push_back(read_bias(whole ? id : -1, bias, vocabulary));
    }
  } else {
    for (const Json& entry : value) {
      const bool pair = entry.is_array() && entry.size() == 2 && entry[0].is_number_integer();
      const int64_t id = pair ? entry[0].get<int64_t>() : -1;
      biases.push_back(read_bias(id, pair ? entry[1] : Json(), vocabulary));
    }
  }
  return biases;
}

void set_float(RequestFields& fields, std::string_view name, float& target) {
  if (const auto value = fields.number(name)) {
    target = static_cast<float>(*value);
  }
}

SamplingParams read_sampling(RequestFields& fields, const ServedModel& model) {
  SamplingParams sampling = model.sampling;
  set_float(fields, "temperature", sampling.temperature);
  set_float(fields, "top_p", sampling.top_p);
  set_float(fields, "min_p", sampling.min_p);
  set_float(fields, "presence_penalty", sampling.presence_penalty);
  set_float(fields, "frequency_penalty", sampling.frequency_penalty);
  set_float(fields, "repeat_penalty", sampling.repetition_penalty);
  set_float(fields, "repetition_penalty", sampling.repetition_penalty);
  // -1 means "all" elsewhere.
  if (const auto top_k = fields.integer("top_k", -1, int64_t{1} << 30)) {
    sampling.top_k = std::max<int64_t>(0, *top_k);
  }
  if (const auto last = fields.integer("repeat_last_n", 0, int64_t{1} << 30)) {
    sampling.penalty_last_n = *last;
  }
  if (const auto prompt_too = fields.boolean("penalise_prompt")) {
    sampling.penalty_scope = *prompt_too ? PenaltyScope::kPromptAndReply : PenaltyScope::kReply;
  }
  if (const Json* biases = fields.find("logit_bias")) {
    sampling.logit_bias = read_biases(*biases, model.vocabulary);
  }
  const auto seed = fields.integer("seed", INT64_MIN, INT64_MAX);
  if (seed && *seed != -1) {
    sampling.seed = static_cast<uint64_t>(*seed);
  } else {
    sampling.seed = !seed && model.seed ? *model.seed : fresh_seed();
  }
  try {
    sampling.validate(model.vocabulary);
  } catch (const Error& error) {
    throw api_error_of(error);
  }
  return sampling;
}

void read_stops(RequestFields& fields, const ServedModel& model, GenerateRequest& generate) {
  generate.stop_strings = fields.texts("stop", kMostStops).value_or(std::vector<std::string>());
  for (const std::string& stop : generate.stop_strings) {
    if (stop.empty() || stop.size() > 512) {
      throw ApiError("stop", "stop expects strings of 1 to 512 bytes");
    }
  }
  const Json* ids = fields.find("stop_token_ids");
  const bool ignore_end = fields.boolean("ignore_eos").value_or(false);
  if (ids == nullptr && !ignore_end) {
    return;
  }
  std::vector<TokenId> stops;
  if (!ignore_end) {
    stops.assign(model.tokenizer->stop_ids().begin(), model.tokenizer->stop_ids().end());
  }
  if (ids != nullptr) {
    if (!ids->is_array() || ids->size() > 64) {
      throw ApiError("stop_token_ids", "stop_token_ids expects an array of at most 64 token ids");
    }
    for (const Json& id : *ids) {
      stops.push_back(token_of(id, "stop_token_ids", model.vocabulary));
    }
  }
  generate.stop_tokens = std::move(stops);
}

void check_drafter(int64_t drafts, const std::string& field, const ServedModel& model) {
  if (drafts > 0 && model.max_drafts == 0) {
    throw ApiError(field, "this server has no drafter, so there is nothing to draft with");
  }
}

void read_speculation(RequestFields& fields, const ServedModel& model, GenerateRequest& generate) {
  generate.adapt_drafts = model.adapt_drafts;
  const Json* value = fields.find("speculative");
  const auto flat = fields.integer("speculative.n_max", 0, int64_t{1} << 30);
  if (flat) {
    check_drafter(*flat, "speculative.n_max", model);
    generate.draft_max = static_cast<int>(std::min<int64_t>(*flat, kMaxDrafts));
  }
  if (value == nullptr) {
    return;
  }
  if (flat) {
    throw ApiError("speculative.n_max", "speculative.n_max and speculative exclude each other");
  }
  if (!value->is_object()) {
    throw ApiError("speculative", "speculative expects an object {\"enabled\", \"max_length\"}");
  }
  RequestFields own(*value, "speculative.");
  const bool enabled = own.boolean("enabled").value_or(true);
  const auto longest = own.integer("max_length", 0, kMaxDrafts);
  const auto policy = own.text("policy", 16);
  own.refuse_unread(true);
  check_drafter(enabled ? longest.value_or(0) : 0, "speculative.max_length", model);
  if (policy && *policy != "adaptive" && *policy != "fixed") {
    throw ApiError("speculative.policy", "speculative.policy expects \"adaptive\" or \"fixed\"");
  }
  generate.draft_max = enabled ? static_cast<int>(longest.value_or(kMaxDrafts)) : 0;
  generate.adapt_drafts = policy ? *policy == "adaptive" : model.adapt_drafts;
}

double read_deadline(RequestFields& fields, std::string_view name) {
  const double ms = fields.number(name).value_or(0.0);
  if (ms < 0.0 || ms > kMostDeadlineMs) {
    throw ApiError(
        std::string(name), fmt::format("{} expects milliseconds in [0, {}]", name, kMostDeadlineMs)
    );
  }
  return ms;
}

void check_model(RequestFields& fields, const ServedModel& model) {
  const auto asked = fields.text("model", 512);
  if (asked && !asked->empty() && *asked != model.name) {
    throw ApiError(
        404,
        "not_found_error",
        fmt::format("there is no model '{}' here, only '{}'", *asked, model.name)
    )
        .with_code("model_not_found");
  }
}

void check_request_id(const std::string& id) {
  const bool plain = std::ranges::all_of(id, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' ||
           c == '_';
  });
  if (!plain) {
    throw ApiError("request_id", "request_id expects letters, digits, '-' and '_'");
  }
}

std::vector<std::string> read_reasoning_keys(RequestFields& fields) {
  const std::string key = fields.text("reasoning_key", 32).value_or("reasoning_content");
  if (key == "both") {
    return {"reasoning_content", "reasoning"};
  }
  if (key != "reasoning_content" && key != "reasoning") {
    throw ApiError("reasoning_key", "reasoning_key expects reasoning_content, reasoning or both");
  }
  return {key};
}

/// The reply's length in its three spellings, of which the newest wins. `room`: what -1 means.
std::optional<int64_t> read_limit(RequestFields& fields, int64_t room) {
  const auto predict = fields.integer("n_predict", -1, int64_t{1} << 30);
  const auto old_limit = fields.integer("max_tokens", 1, int64_t{1} << 30);
  const auto new_limit = fields.integer("max_completion_tokens", 1, int64_t{1} << 30);
  if (predict == 0) {
    throw ApiError("n_predict", "n_predict expects -1 (no limit) or at least 1");
  }
  const std::optional<int64_t> oldest = predict == -1 ? room : predict;
  const std::optional<int64_t> older = old_limit ? old_limit : oldest;
  return new_limit ? new_limit : older;
}

/// Fields of both forms but the prompt. The grammar is read before. `longest`: tokens of the
/// longest prompt.
void read_common(
    RequestFields& fields, const ServedModel& model, int64_t longest, GenerationRequest& request
) {
  check_model(fields, model);
  request.request_id = fields.text("request_id", 64).value_or("");
  check_request_id(request.request_id);
  GenerateRequest& generate = request.generate;
  generate.sampling = read_sampling(fields, model);
  read_stops(fields, model, generate);
  read_speculation(fields, model, generate);
  generate.draft_max = std::min(generate.draft_max, model.max_drafts);
  const int64_t room = std::max<int64_t>(1, model.context_length - longest);
  const int64_t usual = model.max_tokens > 0 ? model.max_tokens : room;
  generate.max_tokens = std::min(room, read_limit(fields, room).value_or(usual));
  generate.min_tokens = fields.integer("min_tokens", 0, int64_t{1} << 30).value_or(0);
  if (generate.min_tokens > generate.max_tokens) {
    throw ApiError(
        "min_tokens",
        fmt::format(
            "min_tokens is {} and the reply may have {} tokens",
            generate.min_tokens,
            generate.max_tokens
        )
    );
  }
  if (generate.min_tokens > 0 && request.grammar != nullptr) {
    throw ApiError("min_tokens", "min_tokens and a format of the reply exclude each other");
  }
  request.choices = fields.integer("n", 1, kMostChoices).value_or(1);
  request.priority = static_cast<int>(fields.integer("priority", -100, 100).value_or(0));
  request.first_token_deadline_ms = read_deadline(fields, "first_token_deadline_ms");
  request.deadline_ms = read_deadline(fields, "deadline_ms");
  request.speech_deadline_ms = read_deadline(fields, "speech_deadline_ms");
  request.first_clause_deadline_ms = read_deadline(fields, "first_clause_deadline_ms");
  if (request.first_clause_deadline_ms > 0.0 && request.form == ReplyForm::kCompletion) {
    throw ApiError(
        "first_clause_deadline_ms", "first_clause_deadline_ms is for chat, where speech is known"
    );
  }
  request.stream = fields.boolean("stream").value_or(false);
  if (const Json* options = fields.find("stream_options")) {
    if (!options->is_object() || !request.stream) {
      throw ApiError("stream_options", "stream_options expects an object, and stream: true");
    }
    RequestFields own(*options, "stream_options.");
    request.include_usage = own.boolean("include_usage").value_or(false);
    request.include_steps = own.boolean("include_steps").value_or(false);
    own.boolean("include_obfuscation");
    const auto least = own.integer("clause_characters", 1, 200);
    if (own.boolean("include_clauses").value_or(false)) {
      if (request.form == ReplyForm::kCompletion) {
        throw ApiError(
            "stream_options.include_clauses", "clauses are told of chat, where speech is known"
        );
      }
      request.clause_characters = least.value_or(SpeechClauses::kUsualLeast);
    }
    own.refuse_unread(true);
  }
  if (!fields.boolean("cache_prompt").value_or(true)) {
    throw ApiError("cache_prompt", "cache_prompt false is not supported: prompts are always kept");
  }
}

/// Fields of another form of request are refused where they say anything.
void refuse_foreign(
    RequestFields& fields, std::initializer_list<const char*> names, const char* place
) {
  for (const char* name : names) {
    const Json* value = fields.find(name);
    const std::string_view field = name;
    const bool off = field == "tool_choice" || field == "reasoning_effort";
    const bool says_nothing =
        value == nullptr || *value == false ||
        (value->is_string() && value->get_ref<const std::string&>().empty()) ||
        (!value->is_primitive() && value->empty()) || (off && *value == "none");
    if (!says_nothing) {
      throw ApiError(name, fmt::format("{} is not supported {}", name, place))
          .with_code("unsupported_field");
    }
  }
}

void refuse_best_of(RequestFields& fields) {
  if (const auto best = fields.integer("best_of", 1, kMostChoices); best.value_or(1) != 1) {
    throw ApiError("best_of", "best_of is not supported").with_code("unsupported_field");
  }
}

const Json* checked_tools(RequestFields& fields, bool strict) {
  const Json* tools = fields.find("tools");
  if (tools == nullptr) {
    return nullptr;
  }
  if (!tools->is_array() || tools->size() > 256) {
    throw ApiError("tools", "tools expects an array of at most 256 tools");
  }
  for (size_t i = 0; i < tools->size(); ++i) {
    const Json& tool = (*tools)[i];
    const bool named = tool.is_object() && tool.contains("function") &&
                       tool["function"].is_object() && tool["function"].contains("name") &&
                       tool["function"]["name"].is_string();
    if (!named || (tool.contains("type") && tool["type"] != "function")) {
      throw ApiError(
          fmt::format("tools[{}]", i),
          fmt::format("tools[{}] is not {{\"type\": \"function\", \"function\": {{\"name\"}}}}", i)
      );
    }
  }
  if (strict) {
    check_tool_members(*tools);
  }
  return tools->empty() ? nullptr : tools;
}

int64_t add_mark(
    const ServedModel& model, ChatInput input, const Json& messages, ChatPrompt& prompt
) {
  // What every conversation with this system message and these tools begins with.
  Json first = Json::array({messages[0]});
  input.messages = &first;
  input.open_reply = false;
  input.continue_last_message = false;
  try {
    const std::vector<TokenId> begin = model.chat_template->encode(*model.tokenizer, input);
    return std::ranges::mismatch(begin, prompt.tokens).in1 - begin.begin();
  } catch (const Error&) {
    return 0;  // a template that wants more than a system message: no mark then
  }
}

/// The prompt's text, control tokens spelled out.
std::string text_of(const std::vector<TextSpan>& spans) {
  std::string text;
  for (const TextSpan& span : spans) {
    text += span.text;
  }
  return text;
}

std::vector<TokenId> read_token_prompt(const Json& list, const ServedModel& model) {
  std::vector<TokenId> tokens;
  for (const Json& id : list) {
    tokens.push_back(token_of(id, "prompt", model.vocabulary));
  }
  return tokens;
}

std::vector<std::vector<TokenId>> read_prompts(RequestFields& fields, const ServedModel& model) {
  const Json* prompt = fields.find("prompt");
  // A caller of this route writes whole prompts, control tokens included, as with --raw.
  const auto encode = [&](const Json& text) {
    return model.tokenizer->with_bos(
        model.tokenizer->encode(text.get_ref<const std::string&>(), SpecialTokens::kParse)
    );
  };
  std::vector<std::vector<TokenId>> prompts;
  if (prompt != nullptr && prompt->is_string()) {
    prompts.push_back(encode(*prompt));
  } else if (prompt != nullptr && prompt->is_array() && !prompt->empty()) {
    if ((*prompt)[0].is_number()) {
      prompts.push_back(read_token_prompt(*prompt, model));
    } else if (static_cast<int64_t>(prompt->size()) <= kMostReplies) {
      for (const Json& entry : *prompt) {
        if (entry.is_string()) {
          prompts.push_back(encode(entry));
        } else if (entry.is_array()) {
          prompts.push_back(read_token_prompt(entry, model));
        } else {
          prompts.clear();
          break;
        }
      }
    }
  }
  if (prompts.empty()) {
    throw ApiError(
        "prompt",
        fmt::format(
            "prompt expects a string, an array of token ids, or an array of at most {} of those",
            kMostReplies
        )
    );
  }
  return prompts;
}

void check_length(const std::vector<TokenId>& prompt, const ServedModel& model, const char* field) {
  if (std::ssize(prompt) >= model.context_length) {
    throw ApiError(
        field,
        fmt::format(
            "the prompt has {} tokens and the context {}: shorten it",
            prompt.size(),
            model.context_length
        )
    )
        .with_code("context_length_exceeded");
  }
  if (prompt.empty()) {
    throw ApiError(field, "the prompt is empty");
  }
}

}  // namespace

EngineRequest GenerationRequest::engine_request(size_t prompt, int64_t choice) const {
  EngineRequest request;
  request.generate = generate;
  request.generate.prompt = prompts[prompt];
  request.generate.sampling.seed += static_cast<uint64_t>(choice);
  request.priority = priority;
  request.first_token_deadline_ms = first_token_deadline_ms;
  request.deadline_ms = deadline_ms;
  request.first_clause_deadline_ms = first_clause_deadline_ms;
  request.speech_deadline_ms = speech_deadline_ms;
  request.thinking_budget = thinking_budget;
  if (grammar != nullptr) {
    request.constraint = std::make_unique<GrammarConstraint>(grammar);
  }
  return request;
}

namespace {

/// Templates see what was agreed on, whatever its spelling: no null, no -1, no 128.0.
void tell_template(const ChatPrompt& prompt, Json& arguments) {
  for (auto argument = arguments.begin(); argument != arguments.end();) {
    argument = argument->is_null() ? arguments.erase(argument) : std::next(argument);
  }
  if (prompt.thinking) {
    arguments["enable_thinking"] = *prompt.thinking;
  }
  const bool limited = prompt.thinking_budget.value_or(0) > 0;
  for (const char* name : kThinkingBudgetNames) {
    if (!limited) {
      arguments.erase(name);
    } else if (arguments.contains(name)) {
      arguments[name] = *prompt.thinking_budget;
    }
  }
  if (limited) {
    arguments["thinking_token_budget"] = *prompt.thinking_budget;
  }
}

}  // namespace

ChatPrompt read_chat_prompt(RequestFields& fields, const ServedModel& model) {
  const Json* messages = fields.find("messages");
  if (messages == nullptr || !messages->is_array() || messages->empty() ||
      messages->size() > kMostMessages) {
    throw ApiError(
        "messages", fmt::format("messages expects an array of 1 to {} messages", kMostMessages)
    );
  }
  const Json* given = fields.find("chat_template_kwargs");
  if (given != nullptr && !given->is_object()) {
    throw ApiError("chat_template_kwargs", "chat_template_kwargs expects an object");
  }
  Json arguments = given != nullptr ? *given : Json::object();
  std::optional<RequestFields> own;
  if (given != nullptr) {
    own.emplace(*given, "chat_template_kwargs.");
  }
  ChatPrompt prompt;
  const bool strict = fields.boolean("strict").value_or(false);
  check_message_members(*messages, strict);
  const ThinkingWish wish = read_thinking_wish(fields, own ? &*own : nullptr);
  if (strict && own) {
    refuse_unknown_arguments(*given, *own, model.chat_template->source());
  }
  prompt.thinking_budget = wish.budget;
  prompt.thinking = wish.enabled;
  if (wish.budget == 0) {
    prompt.thinking = false;
  }
  tell_template(prompt, arguments);
  if (const auto spoken = fields.boolean("conversational_mode")) {
    if (arguments.value("conversational_mode", Json(*spoken)) != *spoken) {
      throw ApiError("conversational_mode", "conversational_mode contradicts chat_template_kwargs");
    }
    arguments["conversational_mode"] = *spoken;
  }
  if (prompt.thinking == false) {
    // Asked for no thoughts: none come, where the vocabulary can have them.
    const bool can_think = model.tokenizer->chat_tokens().channel_close != kNoToken;
    prompt.thinking_budget = can_think ? std::optional<int64_t>(0) : std::nullopt;
  }
  ChatInput input;
  input.messages = messages;
  input.tools = checked_tools(fields, strict);
  input.arguments = &arguments;
  input.open_reply = fields.boolean("add_generation_prompt").value_or(true);
  input.continue_last_message = fields.boolean("continue_final_message").value_or(false);
  try {
    const std::vector<TextSpan> spans = model.chat_template->render(*model.tokenizer, input);
    prompt.text = text_of(spans);
    prompt.tokens = model.tokenizer->with_bos(model.tokenizer->encode_spans(spans));
  } catch (const Error& error) {
    throw ApiError("messages", error.what()).with_code(std::string(error_kind_name(error.kind())));
  }
  const int64_t mark = add_mark(model, input, *messages, prompt);
  if (mark >= 8 && mark < std::ssize(prompt.tokens)) {
    prompt.marks.push_back(mark);
  }
  return prompt;
}

GenerationRequest read_chat_request(const Json& body, const ServedModel& model) {
  RequestFields fields(body);
  const bool strict = fields.boolean("strict").value_or(false);
  GenerationRequest request;
  request.form = ReplyForm::kChat;
  refuse_foreign(fields, {"prompt", "suffix", "echo"}, "by a chat");
  refuse_best_of(fields);
  const Json* modalities = fields.find("modalities");
  if (modalities != nullptr && *modalities != Json::array({"text"})) {
    throw ApiError("modalities", "modalities supports only [\"text\"]");
  }
  ChatPrompt prompt = read_chat_prompt(fields, model);
  check_length(prompt.tokens, model, "messages");
  const Json* tools = checked_tools(fields, strict);
  const ThoughtStart thought = thought_of(prompt, model);
  const std::string choice = read_tools(fields, tools, request);
  request.grammar = read_constraint(fields, model, thought);
  ToolDemand demand = {tools, choice, thought, nullptr};
  if (request.grammar != nullptr && request.tools_allowed) {
    demand.speech = may_speak(choice) ? speech_schema(fields) : nullptr;
    if (demand.speech == nullptr) {
      throw ApiError(
          "tool_choice",
          "tools that may be called go with response_format alone, and a demanded call with no "
          "format; leave the format out, or set tool_choice to none"
      );
    }
  }
  if (auto calls = tool_grammar(demand, model, request)) {
    request.grammar = std::move(calls);
  }
  read_common(fields, model, std::ssize(prompt.tokens), request);
  request.generate.stop_in_speech = true;
  request.reasoning_keys = read_reasoning_keys(fields);
  request.log_probabilities = fields.boolean("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", 0, kMostScores);
  if (top && !request.log_probabilities) {
    throw ApiError("top_logprobs", "top_logprobs needs logprobs: true");
  }
  request.generate.scores = request.log_probabilities ? top.value_or(0) : -1;
  request.generate.marks = std::move(prompt.marks);
  request.thinking_budget = prompt.thinking_budget;
  request.prompts.push_back(std::move(prompt.tokens));
  fields.refuse_unread(strict);
  return request;
}

GenerationRequest read_completion_request(const Json& body, const ServedModel& model) {
  RequestFields fields(body);
  const bool strict = fields.boolean("strict").value_or(false);
  GenerationRequest request;
  request.form = ReplyForm::kCompletion;
  refuse_foreign(
      fields,
      {"messages",
       "tools",
       "tool_choice",
       "reasoning_effort",
       "reasoning",
       "enable_thinking",
       "conversational_mode",
       "chat_template_kwargs",
       "top_logprobs",
       "suffix",
       "echo"},
      "by a completion"
  );
  refuse_best_of(fields);
  request.prompts = read_prompts(fields, model);
  int64_t longest = 0;
  for (const std::vector<TokenId>& prompt : request.prompts) {
    check_length(prompt, model, "prompt");
    longest = std::max(longest, std::ssize(prompt));
  }
  request.grammar = read_constraint(fields, model, ThoughtStart::kNone);
  read_common(fields, model, longest, request);
  if (request.choices * std::ssize(request.prompts) > kMostReplies) {
    throw ApiError("n", fmt::format("prompts times n exceeds {}", kMostReplies));
  }
  if (const auto scores = fields.integer("logprobs", 0, kMostScores)) {
    request.log_probabilities = true;
    request.generate.scores = *scores;
  }
  request.thinking_budget = read_thinking_budget(fields, nullptr);
  fields.refuse_unread(strict);
  return request;
}

}  // namespace octet::serve
