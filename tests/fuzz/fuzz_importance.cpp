// Importance matrices, both forms: what is accepted holds numbers that an encoder may weigh with.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "octet/base/error.h"
#include "octet/quantize/importance.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const octet::ImportanceMatrix matrix =
        octet::parse_importance(std::as_bytes(std::span(data, size)), "input");
    for (const auto& [name, entry] : matrix.entries) {
      for (const float weight : entry.weights()) {
        if (!std::isfinite(weight) || weight < 0.0F) {
          std::abort();
        }
      }
    }
  } catch (const octet::Error&) {
  }
  return 0;
}
