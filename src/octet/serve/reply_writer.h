// How an answer looks to its client: one writer for each form (chat completions, completions,
// responses, messages), all fed by the same session. Says what is sent, not when. Invariants: the
// events of a stream add up to the whole answer; every stream has a defined end, after an error
// too.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "octet/serve/api_error.h"
#include "octet/serve/generation_request.h"
#include "octet/serve/reply_items.h"
#include "octet/text/tokenizer.h"

namespace octet::serve {

/// What all objects of one answer share.
struct ReplyHead {
  std::string id;
  int64_t created = 0;  // seconds since 1970
  std::string model;
};

/// What one step of the engine brought to a choice.
struct ChoiceStep {
  int64_t choice = 0;
  const ChoiceText& text;  // so far, the pieces included
  std::vector<ReplyPiece> pieces;
  std::span<const EmittedToken> scored;  // tokens of the step, when scores were asked for
  const ReplyTokens* told = nullptr;     // the step itself, when steps are to be told
};

class ReplyWriter {
 public:
  virtual ~ReplyWriter() = default;

  // Events of a stream, each as it goes out; empty: nothing to say.
  /// Before anything is known.
  virtual std::string open() { return {}; }
  /// The prompt's processing begins.
  virtual std::string started(const ReplyStarted& /*event*/) { return {}; }
  virtual std::string step(ChoiceStep step) = 0;
  virtual std::string finish(int64_t choice, const ChoiceText& text) = 0;
  /// After the last choice's finish.
  virtual std::string end(const std::vector<ChoiceText>& choices) = 0;
  /// The last event of a stream that failed.
  virtual std::string broken(const ApiError& error) = 0;

  virtual Json whole(const std::vector<ChoiceText>& choices) = 0;
};

/// The writer for the request's form. Request and tokenizer must outlive it.
std::unique_ptr<ReplyWriter> make_reply_writer(
    ReplyHead head, const GenerationRequest& request, const Tokenizer& tokenizer
);

/// "chatcmpl-", "resp_", ...: what ids of the form begin with.
const char* id_prefix(ReplyForm form);

// The makers of each form, for make_reply_writer.
std::unique_ptr<ReplyWriter> make_completions_writer(
    ReplyHead head, const GenerationRequest& request, const Tokenizer& tokenizer
);
std::unique_ptr<ReplyWriter> make_responses_writer(
    ReplyHead head, const GenerationRequest& request
);
std::unique_ptr<ReplyWriter> make_messages_writer(ReplyHead head);

}  // namespace octet::serve
