// One generation over HTTP: submits a request's choices to the engine, turns their events into
// chunks or one whole reply, and cancels when the client is gone. Everything but construction
// happens on the exchange's strand. Invariants: text leaves as it becomes certain, speech before a
// tool call that follows it; a stream that was opened has an end, after an error if it failed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "octet/engine/engine.h"
#include "octet/serve/api_error.h"
#include "octet/serve/generation_request.h"
#include "octet/serve/http_server.h"
#include "octet/serve/reply_writer.h"
#include "octet/serve/spoken_reply.h"

namespace octet::serve {

class ReplySession : public std::enable_shared_from_this<ReplySession> {
 public:
  /// `on_end` is called once, when the last word is said: whoever owns the session may drop it.
  ReplySession(
      const ServedModel& model,
      GenerationRequest request,
      ReplyHead head,
      std::shared_ptr<HttpExchange> exchange,
      std::function<void(const std::string& id)> on_end
  );
  ~ReplySession();

  /// Submits and answers. Throws ApiError before anything was sent: 429 when the queue is full.
  void start(Engine& engine);

  // From any thread:
  void cancel();
  void end_thinking();
  /// What was said, or null where there are several choices.
  using BargeIn = std::function<void(std::shared_ptr<const SpokenReply> spoken)>;
  /// Cancels it and calls `then` on its strand once it is over; does not cancel several choices.
  void barge_in(BargeIn then);

  /// What was said with which token, once it is over; null for several choices.
  std::shared_ptr<const SpokenReply> spoken() const;

 private:
  class Choice;

  void submit(Engine& engine);
  void cancel_choices();
  void wake();
  void drain();
  void take_events();
  void take(Choice& choice, int64_t index, ReplyStreamEvent event);
  void take_tokens(Choice& choice, int64_t index, ReplyTokens& tokens);
  /// Whatever the choice has to say; `told`: the step, if its facts are to be told.
  void send_step(
      Choice& choice, int64_t index, std::span<const EmittedToken> scored, const ReplyTokens* told
  );
  void send(std::string events);
  void end();
  void fail(const ApiError& error);
  void complete();

  const ServedModel& model_;
  GenerationRequest request_;
  std::string id_;
  std::unique_ptr<ReplyWriter> writer_;
  std::shared_ptr<HttpExchange> exchange_;
  std::function<void(const std::string& id)> on_end_;
  std::vector<std::unique_ptr<Choice>> choices_;
  std::atomic<bool> scheduled_{false};
  bool over_ = false;
  bool ended_ = false;
  std::vector<BargeIn> barge_ins_;
};

}  // namespace octet::serve
