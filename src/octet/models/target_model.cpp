#include "octet/models/target_model.h"

#include "octet/base/check.h"

namespace octet {
void SequenceCache::fill_for_measurement(int64_t /*length*/) {
  OCTET_CHECK(false && "only caches of real models are measured");
}

void PassWork::add(const Weight* weight, int64_t rows) {
  if (weight == nullptr || rows == 0) {
    return;
  }
  weight_bytes += weight->resident_bytes;
  (weight->float_activations ? float_multiply_adds : int8_multiply_adds) +=
      rows * weight->rows * weight->cols;
}

void PassWork::add(const PassWork& other) {
  weight_bytes += other.weight_bytes;
  kv_bytes += other.kv_bytes;
  int8_multiply_adds += other.int8_multiply_adds;
  float_multiply_adds += other.float_multiply_adds;
}

}  // namespace octet
