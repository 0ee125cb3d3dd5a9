#include "octet/kernels/ops.h"

namespace octet {

int64_t kv_type_bytes(KvType type) {
  return type == KvType::kBF16 ? 2 : 4;
}

}  // namespace octet
