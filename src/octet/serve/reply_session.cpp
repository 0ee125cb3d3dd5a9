#include "octet/serve/reply_session.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/base/utf8.h"
#include "octet/chat/reply_reader.h"
#include "octet/chat/speech_clauses.h"
#include "octet/chat/speech_filter.h"
#include "octet/serve/reply_form.h"

namespace octet::serve {
namespace {

using Clock = std::chrono::steady_clock;

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
        speech_(request.generate.stop_strings),
        clauses_(
            request.clause_characters > 0 ? request.clause_characters : SpeechClauses::kUsualLeast
        ) {
    if (request.form != ReplyForm::kCompletion) {
      reader_.emplace(model.tokenizer, callable(request));
    }
  }

  std::shared_ptr<ReplyStream> stream;
  ChoiceText text;
  bool done = false;
  std::vector<ReplyPiece> pieces;  // to be sent
  std::shared_ptr<SpokenReply> spoken;

  void start(const std::vector<TokenId>& prompt) {
    spoken = std::make_shared<SpokenReply>(prompt);
    if (reader_) {
      reader_->start(prompt);
    }
  }

  /// Whether the token belongs to the reply: what comes behind its cut depends on how soon the
  /// engine hears of it.
  bool push(const EmittedToken& token) {
    if (cut_) {
      return false;
    }
    read(token);
    spoken->add(token.token, std::exchange(said_, {}));
    return true;
  }

  void read(const EmittedToken& token) {
    drafted_ = token.drafted;
    const bool before = !watched_;
    watched_ = ++seen_ > request_.generate.min_tokens;
    if (before && watched_ && reader_) {
      begun_ = reader_->inside_character();  // until that character has come
    }
    if (!reader_) {
      speak(token.text);
      return;
    }
    if (reader_->thinking() && !reader_->naming() &&
        token.token < model_.tokenizer->vocabulary_size() &&
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
      speak(speech_.finish());
    } else {
      speak(finished.rest);
    }
    end_speech();
    spoken->add_rest(std::exchange(said_, {}));
    text.report = finished.report;
    if (cut_) {
      text.report.reply_tokens = seen_;
    }
    text.times = finished.result.times;
    text.thinking_closed = finished.thinking_closed;
    const bool matched = speech_.match() >= 0;
    // What was cut here is over here, whatever else came meanwhile.
    const FinishReason reason = matched ? FinishReason::kStopString
                                : cut_  ? FinishReason::kStopToken
                                        : finished.result.finish;
    text.finish_reason = finish_reason_of(reason, text.has(ItemKind::kToolCall));
    text.finish_detail =
        cut_ && !matched ? "one_tool_call" : std::string(finish_reason_name(reason));
    if (matched) {
      text.stop_string = request_.generate.stop_strings[static_cast<size_t>(speech_.match())];
    }
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
        end_watch();  // no stop string reaches across a thought
        add(open(ItemKind::kThought), std::move(delta.text));
        break;
      case ReplyDeltaKind::kThinkingEnd:
        break;
      case ReplyDeltaKind::kSpeech:
        hear(delta.text);
        if (speech_.match() >= 0) {
          cut_ = true;  // it may be one in the text of a call that is shown as speech alone
          stream->cancel();
        }
        break;
      case ReplyDeltaKind::kToolCall:
        end_watch();
        end_speech();
        stream->tell_clause();
        text.items.push_back(
            {ItemKind::kToolCall,
             "",
             fmt::format("call_{}_{}", id_, delta.call),
             std::move(delta.text),
             delta.call}
        );
        add(text.items.size() - 1, "");
        break;
      case ReplyDeltaKind::kToolCallArguments:
        add(text.items.size() - 1, std::move(delta.text));
        break;
      case ReplyDeltaKind::kToolCallEnd:
        text.items.back().complete = delta.complete;
        if (!request_.parallel_tool_calls) {
          cut_ = true;  // one is all that was asked for
          stream->cancel();
        }
        break;
    }
  }

  /// What was held back in case of a stop string is said; none goes on behind it.
  void end_watch() {
    speak(speech_.finish());
    begun_ = false;
  }

  /// Stop strings count from the first character that begins behind min_tokens.
  void hear(const std::string& piece) {
    const size_t first =
        std::exchange(begun_, false) ? static_cast<size_t>(decode_utf8(piece, 0).length) : 0;
    const size_t passed = watched_ ? first : piece.size();
    speak(piece.substr(0, passed));
    if (passed < piece.size()) {
      speak(speech_.push(piece.substr(passed)));
    }
  }

  void speak(std::string piece) {
    if (piece.empty()) {
      return;
    }
    text.first_speech_ms = text.first_speech_ms == 0.0 ? age_ms() : text.first_speech_ms;
    said_ += piece;
    std::vector<SpeechClause> certain;
    clauses_.push(piece, certain);
    speech_item_ = open(ItemKind::kSpeech);
    add(speech_item_, std::move(piece));
    take_clauses(std::move(certain));
  }

  /// What was said is said, whatever comes now.
  void end_speech() {
    std::vector<SpeechClause> rest;
    clauses_.finish(rest);
    take_clauses(std::move(rest));
  }

  void take_clauses(std::vector<SpeechClause> certain) {
    if (!certain.empty()) {
      stream->tell_clause();
    }
    const bool sentence = std::ranges::any_of(certain, &SpeechClause::sentence);
    if (sentence && text.first_sentence_ms == 0.0) {
      text.first_sentence_ms = age_ms();
    }
    if (request_.clause_characters > 0 && !certain.empty()) {
      if (pieces.empty() || pieces.back().item != speech_item_) {
        pieces.push_back({speech_item_, "", {}, {}});  // what was said is sent already
      }
      std::ranges::move(certain, std::back_inserter(pieces.back().clauses));
    }
  }

  double age_ms() const {
    return std::chrono::duration<double, std::milli>(Clock::now() - submitted_).count();
  }

  /// The item that goes on, or a new one of the kind.
  size_t open(ItemKind kind) {
    if (text.items.empty() || text.items.back().kind != kind) {
      if (kind == ItemKind::kThought) {
        end_speech();
      }
      text.items.emplace_back().kind = kind;
    }
    return text.items.size() - 1;
  }

  /// Neighbouring pieces of a thought or of speech become one.
  void add(size_t item, std::string part) {
    ReplyItem& whole = text.items[item];
    whole.text += part;
    const bool joins =
        whole.kind != ItemKind::kToolCall && !pieces.empty() && pieces.back().item == item;
    if (!joins) {
      pieces.push_back({item, "", {}, {}});
    }
    ReplyPiece& piece = pieces.back();
    piece.text += part;
    if (request_.include_steps && whole.kind == ItemKind::kSpeech) {
      piece.origins.emplace_back(std::move(part), drafted_);
    }
  }

  const ServedModel& model_;
  const GenerationRequest& request_;
  std::string id_;
  std::optional<ReplyReader> reader_;
  SpeechFilter speech_;
  SpeechClauses clauses_;
  std::string said_;  // with the token being read
  std::vector<ReplyDelta> read_;
  Clock::time_point submitted_ = Clock::now();
  size_t speech_item_ = 0;  // the last one of speech
  int64_t seen_ = 0;        // tokens
  bool drafted_ = false;    // the token being read
  bool watched_ = false;    // likewise: stop strings count from there on
  bool begun_ = false;      // the next character of speech began before that
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
      id_(head.id),
      writer_(make_reply_writer(std::move(head), request_, *model.tokenizer)),
      exchange_(std::move(exchange)),
      on_end_(std::move(on_end)) {}

ReplySession::~ReplySession() = default;

void ReplySession::start(Engine& engine) {
  try {
    submit(engine);
  } catch (...) {
    cancel_choices();
    throw;
  }
  exchange_->on_gone([weak = weak_from_this()] {
    if (const auto self = weak.lock()) {
      self->cancel_choices();
    }
  });
  if (request_.stream) {
    HttpReply head;
    head.content_type = "text/event-stream";
    head.headers = {{"Cache-Control", "no-store"}, {"X-Request-Id", id_}};
    exchange_->open_stream(std::move(head));
    send(writer_->open());
  }
}

void ReplySession::submit(Engine& engine) {
  for (size_t prompt = 0; prompt < request_.prompts.size(); ++prompt) {
    for (int64_t i = 0; i < request_.choices; ++i) {
      auto choice =
          std::make_unique<Choice>(model_, request_, fmt::format("{}_{}", id_, choices_.size()));
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
  exchange_->post([self = shared_from_this()] { self->cancel_choices(); });
}

void ReplySession::end_thinking() {
  exchange_->post([self = shared_from_this()] {
    for (const std::unique_ptr<Choice>& choice : self->choices_) {
      choice->stream->end_thinking();
    }
  });
}

void ReplySession::barge_in(BargeIn then) {
  exchange_->post([self = shared_from_this(), then = std::move(then)]() mutable {
    const bool one = self->choices_.size() == 1;
    if (self->over_ || !one) {
      then(one ? self->choices_[0]->spoken : nullptr);
      return;
    }
    self->barge_ins_.push_back(std::move(then));
    self->cancel_choices();
  });
}

void ReplySession::cancel_choices() {
  for (const std::unique_ptr<Choice>& choice : choices_) {
    choice->stream->cancel();
  }
}

/// On the worker's thread: one visit to the strand for any number of events.
void ReplySession::wake() {
  if (!scheduled_.exchange(true)) {
    exchange_->post([self = shared_from_this()] { self->drain(); });
  }
}

/// A client hears of a bug as of any other failure, in the form of its stream.
void ReplySession::drain() {
  try {
    take_events();
  } catch (const std::exception& error) {
    if (over_) {
      end();
      throw;  // of the last words themselves: the exchange is broken off
    }
    try {
      fail(internal_error(error));
    } catch (...) {
      end();
      throw;
    }
  }
}

void ReplySession::take_events() {
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
  if (const auto* started = std::get_if<ReplyStarted>(&event)) {
    if (request_.stream) {
      send(writer_->started(*started));
    }
  } else if (auto* tokens = std::get_if<ReplyTokens>(&event)) {
    take_tokens(choice, index, *tokens);
  } else if (auto* finished = std::get_if<ReplyFinished>(&event)) {
    choice.finish(*finished);
    if (!barge_ins_.empty() && finished->result.finish == FinishReason::kCancelled) {
      choice.text.finish_detail = "barge_in";
    }
    send_step(choice, index, {}, nullptr);
    if (request_.stream) {
      send(writer_->finish(index, choice.text));
    }
  } else if (auto* failed = std::get_if<ReplyFailed>(&event)) {
    const Error& error = failed->error;
    if (error.kind() == ErrorKind::kUnsupported) {
      fail(ApiError("", error.what()));
    } else {
      const bool memory = error.kind() == ErrorKind::kResourceExhausted;
      fail(ApiError(memory ? 503 : 500, "server_error", error.what()));
    }
  }
}

void ReplySession::take_tokens(Choice& choice, int64_t index, ReplyTokens& tokens) {
  std::vector<EmittedToken> scored;
  for (EmittedToken& token : tokens.tokens) {
    if (choice.push(token) && token.scores) {
      scored.push_back(std::move(token));
    }
  }
  send_step(choice, index, scored, request_.include_steps ? &tokens : nullptr);
  std::ranges::move(scored, std::back_inserter(choice.text.scored));
}

void ReplySession::send_step(
    Choice& choice, int64_t index, std::span<const EmittedToken> scored, const ReplyTokens* told
) {
  std::vector<ReplyPiece> pieces = std::exchange(choice.pieces, {});
  if (request_.stream) {
    send(writer_->step({index, choice.text, std::move(pieces), scored, told}));
  }
}

void ReplySession::send(std::string events) {
  if (!events.empty()) {
    exchange_->write(std::move(events));
  }
}

std::shared_ptr<const SpokenReply> ReplySession::spoken() const {
  return choices_.size() == 1 ? choices_[0]->spoken : nullptr;
}

/// Drops out of the server's sight, then tells those who interrupted it.
void ReplySession::end() {
  if (std::exchange(ended_, true)) {
    return;
  }
  on_end_(id_);
  for (const BargeIn& then : std::exchange(barge_ins_, {})) {
    then(choices_[0]->spoken);
  }
}

void ReplySession::fail(const ApiError& error) {
  over_ = true;
  cancel_choices();
  if (request_.stream) {
    send(writer_->broken(error));
    exchange_->close();
  } else {
    const bool message = request_.form == ReplyForm::kMessage;
    exchange_->reply(error.reply(message ? ErrorForm::kAnthropic : ErrorForm::kOpenAI));
  }
  end();
}

void ReplySession::complete() {
  std::vector<ChoiceText> texts;
  for (const std::unique_ptr<Choice>& choice : choices_) {
    texts.push_back(std::move(choice->text));
  }
  std::string last = request_.stream ? writer_->end(texts) : dump(writer_->whole(texts));
  over_ = true;  // and not before: a client whose last words cannot be written still hears why
  if (request_.stream) {
    send(std::move(last));
    exchange_->close();
  } else {
    HttpReply reply;
    reply.headers = {{"X-Request-Id", id_}};
    reply.body = std::move(last);
    exchange_->reply(std::move(reply));
  }
  end();
}

}  // namespace octet::serve
