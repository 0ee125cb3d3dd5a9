// Files of recorded features: what is accepted can be read to the last value.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "octet/base/error.h"
#include "octet/evaluate/feature_file.h"

namespace {

void read_all(const octet::FeatureFile& file) {
  static_cast<void>(file.digest());
  for (int64_t i = 0; i < std::ssize(file.records()); ++i) {
    const octet::FeatureRecord& record = file.records()[static_cast<size_t>(i)];
    const size_t values = (record.tokens.size() - 1) * static_cast<size_t>(file.header().width());
    if (file.features(i, file.header().taps).size() != values) {
      std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  try {
    read_all(octet::FeatureFile::salvage(bytes, "input"));
    read_all(octet::FeatureFile::parse(bytes, "input"));
  } catch (const octet::Error&) {
  }
  return 0;
}
