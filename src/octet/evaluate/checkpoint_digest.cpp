#include "octet/evaluate/checkpoint_digest.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "octet/evaluate/digest.h"

namespace octet {
namespace {

constexpr size_t kSampleBytes = 4096;

}  // namespace

uint64_t checkpoint_digest(const Checkpoint& checkpoint) {
  std::map<std::string_view, const LogicalTensor*> by_name;  // whatever order the file has
  for (const LogicalTensor& tensor : checkpoint.tensors()) {
    by_name[tensor.name] = &tensor;
  }
  Digest digest;
  digest.add_text(checkpoint.architecture());
  for (const auto& [name, tensor] : by_name) {
    digest.add_text(name);
    digest.add(static_cast<uint64_t>(tensor->dtype));
    for (const int64_t size : tensor->shape) {
      digest.add(static_cast<uint64_t>(size));
    }
    for (const std::byte byte : tensor->data.first(std::min(tensor->data.size(), kSampleBytes))) {
      digest.add(static_cast<uint64_t>(byte));
    }
  }
  return digest.value();
}

}  // namespace octet
