// Bodies of every route that takes one: an answer or an ApiError, never anything else.
#include <cstddef>
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "octet/serve/api_error.h"
#include "octet/serve/generation_request.h"
#include "octet/serve/messages_request.h"
#include "octet/serve/responses_request.h"
#include "octet/serve/text_routes.h"
#include "support/served_model.h"

namespace {

using octet::test::served_model;

template <typename Read>
void attempt(Read read) {
  try {
    read();
  } catch (const octet::serve::ApiError& error) {
    (void)error.body(octet::serve::ErrorForm::kOpenAI);
    (void)error.body(octet::serve::ErrorForm::kAnthropic);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string body(reinterpret_cast<const char*>(data), size);
  attempt([&] {
    const octet::serve::Json json = octet::serve::parse_body(body);
    attempt([&] { octet::serve::read_chat_request(json, served_model()); });
    attempt([&] { octet::serve::read_completion_request(json, served_model()); });
    attempt([&] { octet::serve::read_responses_request(json, served_model()); });
    attempt([&] { octet::serve::read_messages_request(json, served_model()); });
    attempt([&] { octet::serve::count_message_tokens(json, served_model()); });
    attempt([&] { octet::serve::tokenize_text(json, served_model()); });
    attempt([&] { octet::serve::detokenize_text(json, served_model()); });
    attempt([&] { octet::serve::render_prompt(json, served_model()); });
  });
  return 0;
}
