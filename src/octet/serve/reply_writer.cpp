#include "octet/serve/reply_writer.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace octet::serve {

const char* id_prefix(ReplyForm form) {
  switch (form) {
    case ReplyForm::kChat:
      return "chatcmpl-";
    case ReplyForm::kCompletion:
      return "cmpl-";
    case ReplyForm::kResponse:
      return "resp_";
    case ReplyForm::kMessage:
      return "msg_";
  }
  return "";
}

std::unique_ptr<ReplyWriter> make_reply_writer(
    ReplyHead head, const GenerationRequest& request, const Tokenizer& tokenizer
) {
  switch (request.form) {
    case ReplyForm::kResponse:
      return make_responses_writer(std::move(head), request);
    case ReplyForm::kMessage:
      return make_messages_writer(std::move(head));
    case ReplyForm::kChat:
    case ReplyForm::kCompletion:
      break;
  }
  return make_completions_writer(std::move(head), request, tokenizer);
}

}  // namespace octet::serve
