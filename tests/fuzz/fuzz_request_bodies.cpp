// Bodies of every route that takes one: an answer or an ApiError, never anything else.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "octet/formats/open_checkpoint.h"
#include "octet/serve/api_error.h"
#include "octet/serve/generation_request.h"
#include "octet/serve/text_routes.h"
#include "octet/text/load_tokenizer.h"

namespace {

const octet::serve::ServedModel& model() {
  static const octet::serve::ServedModel served = [] {
    const auto checkpoint =
        octet::open_checkpoint(OCTET_SOURCE_DIR "/models/bolt-tiny/bolt-tiny-q8_0.gguf");
    octet::serve::ServedModel made;
    made.name = "tiny";
    made.tokenizer = octet::load_tokenizer(*checkpoint);
    made.chat_template =
        std::make_shared<const octet::ChatTemplate>(octet::load_chat_template(*checkpoint));
    made.grammars = std::make_shared<octet::GrammarCompiler>(made.tokenizer);
    made.vocabulary = made.tokenizer->vocabulary_size();
    made.context_length = 2048;
    made.max_drafts = 7;
    return made;
  }();
  return served;
}

template <typename Read>
void attempt(Read read) {
  try {
    read();
  } catch (const octet::serve::ApiError& error) {
    (void)error.body();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string body(reinterpret_cast<const char*>(data), size);
  attempt([&] {
    const octet::serve::Json json = octet::serve::parse_body(body);
    attempt([&] { octet::serve::read_chat_request(json, model()); });
    attempt([&] { octet::serve::read_completion_request(json, model()); });
    attempt([&] { octet::serve::tokenize_text(json, model()); });
    attempt([&] { octet::serve::detokenize_text(json, model()); });
    attempt([&] { octet::serve::render_prompt(json, model()); });
  });
  return 0;
}
