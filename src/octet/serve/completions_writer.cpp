// Chat completions and completions: OpenAI's objects with what other servers add.

#include <algorithm>
#include <iterator>
#include <utility>

#include <nlohmann/json.hpp>

#include "octet/serve/reply_form.h"
#include "octet/serve/reply_writer.h"

namespace octet::serve {
namespace {

Json tool_calls_of(const ChoiceText& choice) {
  Json calls = Json::array();
  for (const ReplyItem& item : choice.items) {
    if (item.kind == ItemKind::kToolCall) {
      Json entry = {{"id", item.call_id}, {"type", "function"}};
      entry["function"] = {{"name", item.name}, {"arguments", item.text}};
      calls.push_back(std::move(entry));
    }
  }
  return calls;
}

Json tool_delta(Json call) {
  Json delta = Json::object();
  delta["tool_calls"] = Json::array();
  delta["tool_calls"].push_back(std::move(call));
  return delta;
}

class CompletionsWriter final : public ReplyWriter {
 public:
  CompletionsWriter(ReplyHead head, const GenerationRequest& request, const Tokenizer& tokenizer)
      : head_(std::move(head)),
        request_(request),
        tokenizer_(tokenizer),
        chat_(request.form == ReplyForm::kChat),
        states_(request.prompts.size() * static_cast<size_t>(request.choices)) {}

  std::string step(ChoiceStep step) override {
    State& state = states_[static_cast<size_t>(step.choice)];
    std::vector<Json> deltas;
    for (ReplyPiece& piece : step.pieces) {
      deltas.push_back(delta_of(state, step.text, std::move(piece)));
    }
    Json scores = scores_of(request_.form, tokenizer_, step.scored, state.offset);
    Json told = step.told != nullptr ? step_of(*step.told) : Json();
    if (deltas.empty() && (!scores.is_null() || !told.is_null() || !state.role_sent)) {
      deltas.push_back(Json::object());
    }
    std::string events;
    for (Json& delta : deltas) {
      if (!std::exchange(state.role_sent, true)) {
        Json first = {{"role", "assistant"}, {"content", ""}};
        first.update(delta);
        delta = std::move(first);
      }
      Json body = chunk();
      body["choices"].push_back(delta_choice(step.choice, std::move(delta)));
      body["choices"][0]["logprobs"] = std::exchange(scores, nullptr);
      if (!told.is_null()) {
        body["step"] = std::exchange(told, nullptr);
      }
      events += event_of(body);
    }
    return events;
  }

  std::string finish(int64_t choice, const ChoiceText& text) override {
    Json body = chunk();
    body["choices"].push_back(delta_choice(choice, Json::object()));
    add_finish(text, body["choices"][0]);
    if (states_.size() == 1) {
      body["timings"] = timings_of(text);
    }
    return event_of(body);
  }

  std::string end(const std::vector<ChoiceText>& choices) override {
    std::string last;
    if (request_.include_usage) {
      Json body = chunk();
      add_usage(choices, body);
      last = event_of(body);
    }
    return last + kDone;
  }

  std::string broken(const ApiError& error) override {
    return "data: " + error.body(ErrorForm::kOpenAI) + "\n\n" + kDone;
  }

  Json whole(const std::vector<ChoiceText>& choices) override {
    Json body = chunk();
    body["object"] = chat_ ? "chat.completion" : "text_completion";
    for (size_t i = 0; i < choices.size(); ++i) {
      const ChoiceText& choice = choices[i];
      Json entry = {{"index", i}};
      if (chat_) {
        entry["message"] = message_of(choice);
      } else {
        entry["text"] = choice.joined(ItemKind::kSpeech);
      }
      TextOffset offset;
      entry["logprobs"] = scores_of(request_.form, tokenizer_, choice.scored, offset);
      add_finish(choice, entry);
      body["choices"].push_back(std::move(entry));
    }
    add_usage(choices, body);
    return body;
  }

 private:
  struct State {
    bool role_sent = false;
    size_t items = 0;  // begun
    TextOffset offset;
  };
  static constexpr const char* kDone = "data: [DONE]\n\n";

  Json chunk() const {
    return {
        {"id", head_.id},
        {"object", chat_ ? "chat.completion.chunk" : "text_completion"},
        {"created", head_.created},
        {"model", head_.model},
        {"system_fingerprint", nullptr},
        {"choices", Json::array()}};
  }

  Json delta_choice(int64_t index, Json delta) const {
    Json choice = {{"index", index}};
    if (chat_) {
      choice["delta"] = std::move(delta);
    } else {
      choice["text"] = delta.contains("content") ? delta["content"] : Json("");
    }
    choice["logprobs"] = nullptr;
    choice["finish_reason"] = nullptr;
    return choice;
  }

  Json delta_of(State& state, const ChoiceText& text, ReplyPiece piece) const {
    const ReplyItem& item = text.items[piece.item];
    const bool first = piece.item >= state.items;
    state.items = piece.item + 1;
    if (item.kind == ItemKind::kThought) {
      Json delta = Json::object();
      for (const std::string& key : request_.reasoning_keys) {
        delta[key] = piece.text;
      }
      return delta;
    }
    if (item.kind == ItemKind::kSpeech) {
      Json delta = Json::object();
      for (auto& [origin, drafted] : piece.origins) {
        delta["pieces"].push_back(Json::array({std::move(origin), drafted}));
      }
      delta["content"] = std::move(piece.text);
      for (const SpeechClause& clause : piece.clauses) {
        delta["clauses"].push_back(
            {{"text", clause.text}, {"start", clause.start}, {"end", clause.end}}
        );
      }
      return delta;
    }
    Json call = {{"index", item.call}};
    if (first) {
      call["id"] = item.call_id;
      call["type"] = "function";
      call["function"]["name"] = item.name;
    }
    call["function"]["arguments"] = std::move(piece.text);
    return tool_delta(std::move(call));
  }

  Json message_of(const ChoiceText& choice) const {
    Json message = {{"role", "assistant"}, {"content", choice.joined(ItemKind::kSpeech)}};
    message["refusal"] = nullptr;
    if (choice.has(ItemKind::kThought)) {
      for (const std::string& key : request_.reasoning_keys) {
        message[key] = choice.joined(ItemKind::kThought);
      }
    }
    if (choice.has(ItemKind::kToolCall)) {
      message["tool_calls"] = tool_calls_of(choice);
      if (!choice.has(ItemKind::kSpeech)) {
        message["content"] = nullptr;
      }
    }
    return message;
  }

  static void add_finish(const ChoiceText& text, Json& choice) {
    choice["finish_reason"] = text.finish_reason;
    choice["finish_detail"] = text.finish_detail;
    if (text.thinking_closed) {
      choice["thinking_closed_by_budget"] = true;
    }
  }

  void add_usage(const std::vector<ChoiceText>& choices, Json& body) const {
    body["usage"] = usage_of(choices, request_.choices);
    body["timings"] = choices.size() == 1 ? timings_of(choices.front()) : Json();
    body["metrics"] = metrics_of(choices);
  }

  ReplyHead head_;
  const GenerationRequest& request_;
  const Tokenizer& tokenizer_;
  bool chat_;
  std::vector<State> states_;
};

}  // namespace

std::unique_ptr<ReplyWriter> make_completions_writer(
    ReplyHead head, const GenerationRequest& request, const Tokenizer& tokenizer
) {
  return std::make_unique<CompletionsWriter>(std::move(head), request, tokenizer);
}

}  // namespace octet::serve
