// The shipped pair's tokenizer alone, for tests whose models are scripted.
#pragma once

#include <memory>

#include "octet/formats/open_checkpoint.h"
#include "octet/text/load_tokenizer.h"

namespace octet::test {

inline const std::shared_ptr<const Tokenizer>& shipped_tokenizer() {
  static const std::shared_ptr<const Tokenizer> tokenizer =
      load_tokenizer(*open_checkpoint(OCTET_SOURCE_DIR "/models/bolt-tiny/bolt-tiny-q8_0.gguf"));
  return tokenizer;
}

}  // namespace octet::test
