// Any bytes as a tokenizer.json, as a text, and as the pieces and merges of a made-up vocabulary:
// either a clear Error, or a tokenizer that gives the text back and makes no control tokens of
// plain text.
#include <cstddef>
#include <cstdint>

#include "support/tokenizer_probe.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  octet::test::probe_tokenizer({reinterpret_cast<const char*>(data), size});
  return 0;
}
