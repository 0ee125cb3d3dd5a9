#include <cstddef>
#include <cstdint>
#include <span>

#include "fuzz/format_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  octet::fuzz::try_safetensors(std::as_bytes(std::span(data, size)));
  return 0;
}
