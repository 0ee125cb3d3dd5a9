#include "octet/serve/reply_session.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/chat/reply_reader.h"
#include "octet/chat/speech_filter.h"

namespace octet::serve {
namespace {

using Clock = std::chrono::steady_clock;

/// Ends of sentences, as far as a voice that wants to begin needs to know.
bool ends_sentence(std::string_view text) {
  return text.find_first_of(".!?\n") != std::string_view::npos;
}

Json tool_delta(Json call) {
  Json delta = Json::object();
  delta["tool_calls"] = Json::array();
  delta["tool_calls"].push_back(std::move(call));
  return delta;
}

std::vector<std::string> callable(const GenerationRequest& request) {
  // A name that nobody can have: calls are shown as speech when none are allowed.
  return request.tools_allowed ? request.tool_names : std::vector<std::string>{""};
}

}  // namespace

/// One reply of the answer, from tokens to what a client sees.
class ReplySession::Choice {
 public:
  Choice(const ServedModel& model, const GenerationRequest& request, std::string id)
      : model_(model),
        request_(request),
        id_(std::move(id)),
        speech_(request.generate.stop_strings) {
    if (request.form == ReplyForm::kChat) {
      reader_.emplace(model.tokenizer, callable(request));
    }
  }

  std::shared_ptr<ReplyStream> stream;
  ChoiceText text;
  bool done = false;
  bool role_sent = false;
  Json deltas = Json::array();  // to be sent

  void start(const std::vector<TokenId>& prompt) {
    if (reader_) {
      reader_->start(prompt);
    }
  }

  void push(const EmittedToken& token) {
    if (cut_) {
      return;
    }
    drafted_ = token.drafted;
    if (!reader_) {
      speak(token.text);
      return;
    }
    if (reader_->thinking() && token.token < model_.tokenizer->vocabulary_size() &&
        !model_.tokenizer->is_control(token.token)) {
      ++text.thinking_tokens;
    }
    read_.clear();
    if (token.token < model_.tokenizer->vocabulary_size()) {
      reader_->push(token.token, read_);
    }
    take_read();
  }

  void finish(const ReplyFinished& finished) {
    if (reader_) {
      read_.clear();
      reader_->finish(read_);
      take_read();
      speak_now(speech_.finish());
    } else {
      speak(finished.rest);
    }
    text.report = finished.report;
    text.times = finished.result.times;
    text.thinking_closed = finished.thinking_closed;
    const FinishReason reason = cut_ ? FinishReason::kStopToken : finished.result.finish;
    text.finish_reason = finish_reason_of(reason, !text.tool_calls.empty());
    text.finish_detail = cut_ ? "one_tool_call" : std::string(finish_reason_name(reason));
    done = true;
  }

 private:
  void take_read() {
    for (ReplyDelta& delta : read_) {
      if (!cut_) {
        take(delta);
      }
    }
  }

  void take(ReplyDelta& delta) {
    switch (delta.kind) {
      case ReplyDeltaKind::kThinking:
        text.has_reasoning = true;
        text.reasoning += delta.text;
        add({{"reasoning_content", std::move(delta.text)}});
        break;
      case ReplyDeltaKind::kThinkingEnd:
        break;
      case ReplyDeltaKind::kSpeech:
        speak_now(speech_.push(std::move(delta.text)));
        break;
      case ReplyDeltaKind::kToolCall:
        speak_now(speech_.finish());
        text.tool_calls.push_back({fmt::format("call_{}_{}", id_, delta.call), delta.text, ""});
        add(tool_delta(
            {{"index", delta.call},
             {"id", text.tool_calls.back().id},
             {"type", "function"},
             {"function", {{"name", delta.text}, {"arguments", ""}}}}
        ));
        break;
      case ReplyDeltaKind::kToolCallArguments:
        text.tool_calls.back().arguments += delta.text;
        add(tool_delta({{"index", delta.call}, {"function", {{"arguments", std::move(delta.text)}}}}
        ));
        break;
      case ReplyDeltaKind::kToolCallEnd:
        if (!request_.parallel_tool_calls) {
          cut_ = true;  // one is all that was asked for
          stream->cancel();
        }
        break;
    }
  }

  void speak(std::string piece) { speak_now(std::move(piece)); }

  void speak_now(std::string piece) {
    if (piece.empty()) {
      return;
    }
    const double now = std::chrono::duration<double, std::milli>(Clock::now() - submitted_).count();
    text.first_speech_ms = text.first_speech_ms == 0.0 ? now : text.first_speech_ms;
    if (text.first_sentence_ms == 0.0 && ends_sentence(piece)) {
      text.first_sentence_ms = now;
    }
    text.content += piece;
    Json delta = Json::object();
    if (request_.include_steps) {
      delta["pieces"] = Json::array({Json::array({piece, drafted_})});
    }
    delta["content"] = std::move(piece);
    add(std::move(delta));
  }

  /// Neighbouring pieces of one kind become one.
  void add(Json delta) {
    if (!deltas.empty()) {
      Json& last = deltas.back();
      for (const char* kind : {"content", "reasoning_content"}) {
        if (last.contains(kind) && delta.contains(kind)) {
          last[kind].get_ref<std::string&>() += delta[kind].get_ref<const std::string&>();
          if (delta.contains("pieces")) {
            last["pieces"].push_back(std::move(delta["pieces"][0]));
          }
          return;
        }
      }
    }
    deltas.push_back(std::move(delta));
  }

  const ServedModel& model_;
  const GenerationRequest& request_;
  std::string id_;
  std::optional<ReplyReader> reader_;
  SpeechFilter speech_;
  std::vector<ReplyDelta> read_;
  Clock::time_point submitted_ = Clock::now();
  bool drafted_ = false;  // the token being read
  bool cut_ = false;
};

ReplySession::ReplySession(
    const ServedModel& model,
    GenerationRequest request,
    ReplyHead head,
    std::shared_ptr<HttpExchange> exchange,
    std::function<void(const std::string& id)> on_end
)
    : model_(model),
      request_(std::move(request)),
      head_(std::move(head)),
      exchange_(std::move(exchange)),
      on_end_(std::move(on_end)) {}

ReplySession::~ReplySession() = default;

void ReplySession::start(Engine& engine) {
  try {
    submit(engine);
  } catch (...) {
    cancel();
    throw;
  }
  exchange_->on_gone([weak = weak_from_this()] {
    if (const auto self = weak.lock()) {
      self->cancel();
    }
  });
  if (request_.stream) {
    HttpReply head;
    head.content_type = "text/event-stream";
    head.headers = {{"Cache-Control", "no-store"}, {"X-Request-Id", head_.id}};
    exchange_->open_stream(std::move(head));
  }
}

void ReplySession::submit(Engine& engine) {
  for (size_t prompt = 0; prompt < request_.prompts.size(); ++prompt) {
    for (int64_t i = 0; i < request_.choices; ++i) {
      auto choice = std::make_unique<Choice>(
          model_, request_, fmt::format("{}_{}", head_.id, choices_.size())
      );
      choice->start(request_.prompts[prompt]);
      try {
        choice->stream =
            engine.submit(request_.engine_request(prompt, i), [weak = weak_from_this()] {
              if (const auto self = weak.lock()) {
                self->wake();
              }
            });
      } catch (const Error& error) {
        throw api_error_of(error);
      }
      if (choice->stream == nullptr) {
        throw ApiError(429, "rate_limit_error", "the queue is full; try again soon")
            .with_code("queue_full");
      }
      choices_.push_back(std::move(choice));
    }
  }
}

void ReplySession::cancel() {
  for (const std::unique_ptr<Choice>& choice : choices_) {
    choice->stream->cancel();
  }
}

void ReplySession::end_thinking() {
  for (const std::unique_ptr<Choice>& choice : choices_) {
    choice->stream->end_thinking();
  }
}

/// On the worker's thread: one visit to the strand for any number of events.
void ReplySession::wake() {
  if (!scheduled_.exchange(true)) {
    exchange_->post([self = shared_from_this()] { self->drain(); });
  }
}

void ReplySession::drain() {
  scheduled_.store(false);
  for (size_t i = 0; i < choices_.size() && !over_; ++i) {
    while (auto event = choices_[i]->stream->try_next()) {
      take(*choices_[i], static_cast<int64_t>(i), std::move(*event));
      if (over_) {
        return;
      }
    }
  }
  const bool all = std::ranges::all_of(choices_, [](const auto& choice) { return choice->done; });
  if (all && !over_) {
    complete();
  }
}

void ReplySession::take(Choice& choice, int64_t index, ReplyStreamEvent event) {
  if (auto* tokens = std::get_if<ReplyTokens>(&event)) {
    std::vector<EmittedToken> scored;
    for (EmittedToken& token : tokens->tokens) {
      choice.push(token);
      if (token.scores) {
        scored.push_back(std::move(token));
      }
    }
    send_deltas(
        choice,
        index,
        scores_of(request_.form, *model_.tokenizer, scored),
        request_.include_steps ? step_of(tokens->step, tokens->times) : Json()
    );
    std::ranges::move(scored, std::back_inserter(choice.text.scored));
  } else if (auto* finished = std::get_if<ReplyFinished>(&event)) {
    choice.finish(*finished);
    send_deltas(choice, index, nullptr, nullptr);
    send_finish(choice, index);
  } else if (auto* failed = std::get_if<ReplyFailed>(&event)) {
    const bool memory = failed->error.kind() == ErrorKind::kResourceExhausted;
    fail(ApiError(memory ? 503 : 500, "server_error", failed->error.what()));
  }
}

void ReplySession::send_deltas(Choice& choice, int64_t index, Json log_probabilities, Json step) {
  Json deltas = std::exchange(choice.deltas, Json::array());
  if (!request_.stream ||
      (deltas.empty() && log_probabilities.is_null() && step.is_null() && choice.role_sent)) {
    return;
  }
  if (deltas.empty()) {
    deltas.push_back(Json::object());
  }
  std::string events;
  for (Json& delta : deltas) {
    if (!choice.role_sent) {
      Json first = {{"role", "assistant"}, {"content", ""}};
      first.update(delta);
      delta = std::move(first);
      choice.role_sent = true;
    }
    Json body = chunk(head_);
    body["choices"].push_back(delta_choice(head_, index, std::move(delta)));
    body["choices"][0]["logprobs"] = std::exchange(log_probabilities, nullptr);
    if (!step.is_null()) {
      body["step"] = std::exchange(step, nullptr);
    }
    events += event_of(body);
  }
  exchange_->write(std::move(events));
}

void ReplySession::send_finish(Choice& choice, int64_t index) {
  if (!request_.stream) {
    return;
  }
  Json body = chunk(head_);
  body["choices"].push_back(delta_choice(head_, index, Json::object()));
  body["choices"][0]["finish_reason"] = choice.text.finish_reason;
  body["choices"][0]["finish_detail"] = choice.text.finish_detail;
  if (choice.text.thinking_closed) {
    body["choices"][0]["thinking_closed_by_budget"] = true;
  }
  if (choices_.size() == 1) {
    body["timings"] = timings_of(choice.text);
  }
  exchange_->write(event_of(body));
}

void ReplySession::fail(const ApiError& error) {
  over_ = true;
  cancel();
  if (request_.stream) {
    exchange_->write("data: " + error.body() + "\n\ndata: [DONE]\n\n");
    exchange_->close();
  } else {
    exchange_->reply(error.reply());
  }
  on_end_(head_.id);
}

void ReplySession::complete() {
  over_ = true;
  std::vector<ChoiceText> texts;
  for (const std::unique_ptr<Choice>& choice : choices_) {
    texts.push_back(std::move(choice->text));
  }
  if (request_.stream) {
    std::string last;
    if (request_.include_usage) {
      Json body = chunk(head_);
      body["usage"] = usage_of(texts);
      body["timings"] = texts.size() == 1 ? timings_of(texts.front()) : Json();
      body["metrics"] = metrics_of(texts);
      last = event_of(body);
    }
    exchange_->write(last + "data: [DONE]\n\n");
    exchange_->close();
  } else {
    HttpReply reply;
    reply.headers = {{"X-Request-Id", head_.id}};
    reply.body = dump(whole(head_, *model_.tokenizer, texts));
    exchange_->reply(std::move(reply));
  }
  on_end_(head_.id);
}

}  // namespace octet::serve
