// The shipped pair's target as the server has it, for tests that read requests and generate
// nothing.
#pragma once

#include <memory>

#include "octet/formats/open_checkpoint.h"
#include "octet/serve/generation_request.h"
#include "octet/text/load_tokenizer.h"

namespace octet::test {

inline const serve::ServedModel& served_model() {
  static const serve::ServedModel served = [] {
    const auto checkpoint =
        open_checkpoint(OCTET_SOURCE_DIR "/models/bolt-tiny/bolt-tiny-q8_0.gguf");
    serve::ServedModel made;
    made.name = "tiny";
    made.tokenizer = load_tokenizer(*checkpoint);
    made.chat_template = std::make_shared<const ChatTemplate>(load_chat_template(*checkpoint));
    made.grammars = std::make_shared<GrammarCompiler>(made.tokenizer);
    made.vocabulary = made.tokenizer->vocabulary_size();
    made.context_length = 512;
    made.max_drafts = 7;
    return made;
  }();
  return served;
}

}  // namespace octet::test
